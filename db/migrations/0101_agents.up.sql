-- Agents, their events, identities and tools.

CREATE TABLE agents (
	org                             integer     NOT NULL,
	key                             bigserial   NOT NULL,
	id                              text        NOT NULL DEFAULT ('agent-' || gen_random_uuid()),
	name                            text        NOT NULL,
	agent_type                      text        NOT NULL,
	description                     text,
	metadata                        jsonb,
	system                          text        NOT NULL,
	tags                            text[]      NOT NULL DEFAULT '{}',
	timezone                        text        NOT NULL DEFAULT 'UTC',
	model                           text,
	embedding                       text,
	context_window_limit            integer,
	max_files_open                  integer,
	per_file_view_window_char_limit integer,
	hidden                          boolean     NOT NULL DEFAULT false,
	settings                        jsonb       NOT NULL DEFAULT '{}',
	created_at                      timestamptz NOT NULL DEFAULT now(),
	updated_at                      timestamptz NOT NULL DEFAULT now(),
	-- How the newest run of an agent that has ended did so, and when the newest one of a conversation did.
	last_run_completion             timestamptz,
	last_run_duration_ms            bigint,
	last_stop_reason                text,
	-- How deep sub-agents are that work there: 0 is no sub-agent. A copy of a sub-agent's conversation is as deep,
	-- also when the sub-agent's row is deleted.
	depth                           integer     NOT NULL DEFAULT 0,
	-- When an update last changed what the agent's system prompt shows, which the prompt says.
	system_changed_at               timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (org, id),
	CONSTRAINT agents_depth CHECK (depth >= 0),
	CONSTRAINT agents_key_key UNIQUE (org, key),
	CONSTRAINT agents_context_window_limit CHECK (context_window_limit BETWEEN 1 AND 100000000),
	CONSTRAINT agents_max_files_open CHECK (max_files_open BETWEEN 1 AND 1000),
	CONSTRAINT agents_name_length CHECK (length(name) BETWEEN 1 AND 200),
	CONSTRAINT agents_view_chars CHECK (per_file_view_window_char_limit BETWEEN 100 AND 10000000),
	CONSTRAINT agents_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
CREATE INDEX agents_org ON agents (org, created_at, key);
CREATE INDEX agents_tags ON agents USING gin (tags);

-- One counter an agent: its events are numbered without a gap, in the order of their commits.
CREATE TABLE agent_heads (
	org      integer NOT NULL,
	agent_id text    NOT NULL,
	seq      bigint  NOT NULL,
	PRIMARY KEY (org, agent_id),
	CONSTRAINT agent_heads_agent_id_fkey FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	CONSTRAINT agent_heads_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);

CREATE TABLE events (
	org      integer     NOT NULL,
	agent_id text        NOT NULL,
	seq      bigint      NOT NULL,
	type     text        NOT NULL,
	ref_id   text        NOT NULL,
	at       timestamptz NOT NULL,
	PRIMARY KEY (org, agent_id, seq),
	CONSTRAINT events_agent_id_fkey FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	CONSTRAINT events_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);

-- How far a reader of an agent's events has come.
CREATE TABLE event_consumers (
	org        integer     NOT NULL,
	agent_id   text        NOT NULL,
	name       text        NOT NULL,
	seq        bigint      NOT NULL DEFAULT 0,
	created_at timestamptz NOT NULL DEFAULT now(),
	updated_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (org, agent_id, name),
	CONSTRAINT event_consumers_name CHECK (length(name) BETWEEN 1 AND 200),
	CONSTRAINT event_consumers_seq CHECK (seq >= 0),
	CONSTRAINT event_consumers_agent_id_fkey FOREIGN KEY (org, agent_id)
		REFERENCES agents (org, id) ON DELETE CASCADE
);

-- Whom or what agents and blocks belong to, as the organization's programs name it.
CREATE TABLE identities (
	org            integer     NOT NULL,
	key            bigserial   NOT NULL,
	id             text        NOT NULL DEFAULT ('identity-' || gen_random_uuid()),
	identifier_key text        NOT NULL,
	name           text        NOT NULL,
	identity_type  text        NOT NULL,
	properties     json        NOT NULL,
	created_at     timestamptz NOT NULL DEFAULT now(),
	updated_at     timestamptz NOT NULL DEFAULT now(),
	made_by        jsonb,
	changed_by     jsonb,
	PRIMARY KEY (org, key),
	CONSTRAINT identities_id_key UNIQUE (org, id),
	CONSTRAINT identities_identifier_key UNIQUE (org, identifier_key),
	CONSTRAINT identities_makers CHECK ((octet_length(made_by::text) <= 2000) AND
		(octet_length(changed_by::text) <= 2000)),
	CONSTRAINT identities_identity_type CHECK (identity_type IN ('org', 'user', 'other')),
	CONSTRAINT identities_lengths CHECK (length(identifier_key) BETWEEN 1 AND 500 AND length(name)
		BETWEEN 1 AND 500),
	CONSTRAINT identities_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
CREATE INDEX identities_by_creation ON identities (org, created_at, key);

CREATE TABLE agent_identities (
	org          integer NOT NULL,
	agent_id     text    NOT NULL,
	identity_key bigint  NOT NULL,
	PRIMARY KEY (org, agent_id, identity_key),
	CONSTRAINT agent_identities_agent FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	CONSTRAINT agent_identities_identity FOREIGN KEY (org, identity_key)
		REFERENCES identities (org, key) ON DELETE CASCADE
);
CREATE INDEX agent_identities_identity ON agent_identities (org, identity_key);

-- The tools that an organization's programs run themselves, as definitions: a model is given json_schema, and its
-- calls wait for the program. source_code is kept for its readers; it is never run.
CREATE TABLE tools (
	org                       integer     NOT NULL,
	key                       bigserial   NOT NULL,
	id                        text        NOT NULL DEFAULT ('tool-' || gen_random_uuid()),
	name                      text        NOT NULL,
	description               text        NOT NULL,
	json_schema               json        NOT NULL,
	args_json_schema          json,
	source_code               text,
	source_type               text        NOT NULL,
	tags                      text[]      NOT NULL DEFAULT '{}',
	return_char_limit         integer     NOT NULL,
	pip_requirements          json,
	npm_requirements          json,
	default_requires_approval boolean,
	enable_parallel_execution boolean,
	metadata                  json,
	created_at                timestamptz NOT NULL DEFAULT now(),
	updated_at                timestamptz NOT NULL DEFAULT now(),
	-- The names that a definition had, the newest last. Calls of these names wait in conversations, and the rules
	-- of tools hold for their results.
	former_names              text[]      NOT NULL DEFAULT '{}',
	made_by                   jsonb,
	changed_by                jsonb,
	PRIMARY KEY (org, key),
	CONSTRAINT tools_id_key UNIQUE (org, id),
	CONSTRAINT tools_makers CHECK ((octet_length(made_by::text) <= 2000) AND
		(octet_length(changed_by::text) <= 2000)),
	CONSTRAINT tools_name_key UNIQUE (org, name),
	CONSTRAINT tools_name CHECK (name ~ '^[a-zA-Z0-9_-]{1,64}$'),
	CONSTRAINT tools_return_char_limit CHECK (return_char_limit BETWEEN 1 AND 1000000),
	CONSTRAINT tools_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
CREATE INDEX tools_by_creation ON tools (org, created_at, key);

-- The definitions that an agent's model is given.
CREATE TABLE agent_tools (
	org         integer     NOT NULL,
	agent_id    text        NOT NULL,
	tool_key    bigint      NOT NULL,
	attached_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (org, agent_id, tool_key),
	CONSTRAINT agent_tools_agent FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	CONSTRAINT agent_tools_tool FOREIGN KEY (org, tool_key) REFERENCES tools (org, key) ON DELETE CASCADE
);
CREATE INDEX agent_tools_tool ON agent_tools (org, tool_key);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
