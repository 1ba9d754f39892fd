-- The tables of a Letta server that an import reads, as its last migration leaves them.
CREATE EXTENSION IF NOT EXISTS vector;
CREATE SEQUENCE message_seq_id;
CREATE TYPE vectordbprovider AS ENUM ('NATIVE', 'TPUF', 'PINECONE');

CREATE TABLE alembic_version (
	version_num varchar(32) NOT NULL,
	PRIMARY KEY (version_num)
);

CREATE TABLE organizations (
	id varchar NOT NULL,
	name varchar NOT NULL,
	created_at timestamptz,
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	privileged_tools boolean NOT NULL,
	PRIMARY KEY (id)
);

CREATE TABLE users (
	id varchar NOT NULL,
	name varchar NOT NULL,
	created_at timestamptz,
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	PRIMARY KEY (id)
);

CREATE TABLE agents (
	id varchar NOT NULL,
	name varchar,
	created_at timestamptz DEFAULT now(),
	description varchar,
	message_ids json,
	system varchar,
	agent_type varchar,
	llm_config json,
	embedding_config json,
	metadata_ json,
	tool_rules json,
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	project_id varchar,
	template_id varchar,
	base_template_id varchar,
	message_buffer_autoclear boolean NOT NULL,
	enable_sleeptime boolean,
	response_format json,
	last_run_completion timestamptz,
	last_run_duration_ms integer,
	timezone varchar,
	max_files_open integer,
	per_file_view_window_char_limit integer,
	hidden boolean,
	entity_id varchar,
	deployment_id varchar,
	_vector_db_namespace varchar,
	last_stop_reason varchar,
	compaction_settings json,
	PRIMARY KEY (id)
);

CREATE TABLE agents_tags (
	agent_id varchar NOT NULL,
	tag varchar NOT NULL,
	UNIQUE (agent_id, tag)
);

CREATE TABLE block (
	id varchar NOT NULL,
	value varchar NOT NULL,
	"limit" integer NOT NULL,
	template_name varchar,
	label varchar NOT NULL,
	metadata_ json,
	description varchar,
	is_template boolean NOT NULL,
	organization_id varchar NOT NULL,
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	current_history_entry_id varchar,
	version integer DEFAULT 1 NOT NULL,
	read_only boolean NOT NULL,
	preserve_on_migration boolean,
	project_id varchar,
	entity_id varchar,
	base_template_id varchar,
	template_id varchar,
	deployment_id varchar,
	hidden boolean,
	PRIMARY KEY (id),
	UNIQUE (id, label)
);

CREATE TABLE block_history (
	description text,
	label varchar NOT NULL,
	value text NOT NULL,
	"limit" bigint NOT NULL,
	metadata_ json,
	actor_type varchar,
	actor_id varchar,
	block_id varchar NOT NULL,
	sequence_number integer NOT NULL,
	organization_id varchar NOT NULL,
	id varchar NOT NULL,
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	PRIMARY KEY (id)
);

CREATE TABLE blocks_agents (
	agent_id varchar NOT NULL,
	block_id varchar NOT NULL,
	block_label varchar NOT NULL,
	UNIQUE (agent_id, block_id),
	UNIQUE (agent_id, block_label)
);

CREATE TABLE blocks_tags (
	block_id varchar NOT NULL,
	tag varchar NOT NULL,
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	PRIMARY KEY (block_id, tag)
);

CREATE TABLE conversations (
	id varchar NOT NULL,
	agent_id varchar NOT NULL,
	summary varchar,
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	model varchar,
	model_settings json,
	last_message_at timestamptz,
	PRIMARY KEY (id)
);

CREATE TABLE conversation_messages (
	id varchar NOT NULL,
	conversation_id varchar,
	agent_id varchar NOT NULL,
	message_id varchar NOT NULL,
	position integer NOT NULL,
	in_context boolean NOT NULL,
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (conversation_id, message_id)
);

CREATE TABLE messages (
	id varchar NOT NULL,
	agent_id varchar NOT NULL,
	role varchar NOT NULL,
	text varchar,
	model varchar,
	name varchar,
	tool_calls json NOT NULL,
	tool_call_id varchar,
	created_at timestamptz,
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	step_id varchar,
	otid varchar,
	tool_returns json,
	group_id varchar,
	content json,
	sequence_id bigint DEFAULT nextval('message_seq_id'::regclass) NOT NULL,
	sender_id varchar,
	batch_item_id varchar,
	is_err boolean,
	approval_request_id varchar,
	approve boolean,
	denial_reason varchar,
	run_id varchar,
	approvals json,
	conversation_id varchar,
	PRIMARY KEY (id),
	UNIQUE (sequence_id)
);

CREATE TABLE archives (
	name varchar NOT NULL,
	description varchar,
	metadata_ json,
	id varchar NOT NULL,
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	vector_db_provider vectordbprovider NOT NULL,
	_vector_db_namespace varchar,
	embedding_config json,
	PRIMARY KEY (id)
);

CREATE TABLE archives_agents (
	agent_id varchar NOT NULL,
	archive_id varchar NOT NULL,
	created_at timestamptz DEFAULT now() NOT NULL,
	is_owner boolean NOT NULL,
	PRIMARY KEY (agent_id, archive_id),
	UNIQUE (agent_id)
);

CREATE TABLE archival_passages (
	id varchar NOT NULL,
	text varchar NOT NULL,
	embedding_config json,
	metadata_ json NOT NULL,
	embedding vector(4096),
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	archive_id varchar NOT NULL,
	tags json,
	PRIMARY KEY (id)
);

CREATE TABLE passage_tags (
	id varchar NOT NULL,
	tag varchar NOT NULL,
	passage_id varchar NOT NULL,
	archive_id varchar NOT NULL,
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (passage_id, tag)
);

CREATE TABLE sources (
	id varchar NOT NULL,
	name varchar NOT NULL,
	created_at timestamptz DEFAULT now(),
	embedding_config json NOT NULL,
	description varchar,
	metadata_ json,
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	instructions varchar,
	vector_db_provider vectordbprovider NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (name, organization_id)
);

CREATE TABLE sources_agents (
	agent_id varchar NOT NULL,
	source_id varchar NOT NULL,
	PRIMARY KEY (agent_id, source_id)
);

CREATE TABLE files (
	id varchar NOT NULL,
	source_id varchar NOT NULL,
	file_name varchar,
	file_path varchar,
	file_type varchar,
	file_size integer,
	file_creation_date varchar,
	file_last_modified_date varchar,
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	processing_status varchar NOT NULL,
	error_message text,
	original_file_name varchar,
	total_chunks integer,
	chunks_embedded integer,
	PRIMARY KEY (id)
);

CREATE TABLE file_contents (
	file_id varchar NOT NULL,
	text text NOT NULL,
	id varchar NOT NULL,
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	PRIMARY KEY (file_id, id),
	UNIQUE (file_id)
);

CREATE TABLE files_agents (
	id varchar NOT NULL,
	file_id varchar NOT NULL,
	agent_id varchar NOT NULL,
	is_open boolean NOT NULL,
	visible_content text,
	last_accessed_at timestamptz DEFAULT now() NOT NULL,
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	file_name varchar NOT NULL,
	source_id varchar NOT NULL,
	start_line integer,
	end_line integer,
	PRIMARY KEY (id, file_id, agent_id),
	UNIQUE (agent_id, file_name),
	UNIQUE (file_id, agent_id)
);

CREATE TABLE source_passages (
	id varchar NOT NULL,
	text varchar NOT NULL,
	embedding_config json,
	metadata_ json NOT NULL,
	embedding vector(4096),
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	file_id varchar,
	source_id varchar NOT NULL,
	file_name varchar NOT NULL,
	tags json,
	PRIMARY KEY (id)
);

CREATE TABLE tools (
	id varchar NOT NULL,
	name varchar NOT NULL,
	description varchar,
	source_type varchar NOT NULL,
	source_code varchar,
	json_schema json,
	tags json NOT NULL,
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	return_char_limit integer,
	tool_type varchar NOT NULL,
	args_json_schema json,
	metadata_ json,
	pip_requirements json,
	npm_requirements json,
	default_requires_approval boolean,
	enable_parallel_execution boolean,
	project_id varchar,
	PRIMARY KEY (id),
	UNIQUE (name, organization_id),
	UNIQUE (organization_id, project_id, name)
);

CREATE TABLE mcp_server (
	id varchar NOT NULL,
	server_name varchar NOT NULL,
	server_type varchar NOT NULL,
	server_url varchar,
	stdio_config json,
	organization_id varchar NOT NULL,
	is_deleted boolean DEFAULT false NOT NULL,
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	_created_by_id varchar,
	_last_updated_by_id varchar,
	metadata_ json,
	token varchar,
	custom_headers json,
	token_enc text,
	custom_headers_enc text,
	PRIMARY KEY (id),
	UNIQUE (server_name, organization_id)
);

CREATE TABLE tools_agents (
	agent_id varchar NOT NULL,
	tool_id varchar NOT NULL,
	UNIQUE (agent_id, tool_id)
);

CREATE TABLE identities (
	id varchar NOT NULL,
	identifier_key varchar NOT NULL,
	name varchar NOT NULL,
	identity_type varchar NOT NULL,
	project_id varchar,
	organization_id varchar NOT NULL,
	created_at timestamptz DEFAULT CURRENT_TIMESTAMP,
	updated_at timestamptz DEFAULT CURRENT_TIMESTAMP,
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	properties json DEFAULT '[]' NOT NULL,
	PRIMARY KEY (id),
	UNIQUE (identifier_key, project_id, organization_id)
);

CREATE TABLE identities_agents (
	identity_id varchar NOT NULL,
	agent_id varchar NOT NULL,
	PRIMARY KEY (identity_id, agent_id)
);

CREATE TABLE identities_blocks (
	identity_id varchar NOT NULL,
	block_id varchar NOT NULL,
	PRIMARY KEY (identity_id, block_id)
);

CREATE TABLE runs (
	id varchar NOT NULL,
	status varchar NOT NULL,
	completed_at timestamp,
	stop_reason varchar,
	background boolean,
	metadata_ json,
	request_config json,
	agent_id varchar NOT NULL,
	callback_url varchar,
	callback_sent_at timestamp,
	callback_status_code integer,
	callback_error varchar,
	ttft_ns bigint,
	total_duration_ns bigint,
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	project_id varchar,
	base_template_id varchar,
	template_id varchar,
	deployment_id varchar,
	conversation_id varchar,
	PRIMARY KEY (id)
);

CREATE TABLE groups (
	id varchar NOT NULL,
	description varchar NOT NULL,
	manager_type varchar NOT NULL,
	manager_agent_id varchar,
	termination_token varchar,
	max_turns integer,
	created_at timestamptz DEFAULT now(),
	updated_at timestamptz DEFAULT now(),
	is_deleted boolean DEFAULT false NOT NULL,
	_created_by_id varchar,
	_last_updated_by_id varchar,
	organization_id varchar NOT NULL,
	agent_ids json NOT NULL,
	sleeptime_agent_frequency integer,
	turns_counter integer,
	last_processed_message_id varchar,
	max_message_buffer_length integer,
	min_message_buffer_length integer,
	project_id varchar,
	base_template_id varchar,
	template_id varchar,
	deployment_id varchar,
	hidden boolean,
	PRIMARY KEY (id)
);

