-- The logs of conversations.

-- The log of an agent: its conversations refer to it, and their messages to them. agent_key is the agent's, and
-- NULL once the agent is deleted: the log is then cleared in the background, its messages first, the row here last.
CREATE TABLE agent_logs (
	org       integer NOT NULL,
	key       bigint  NOT NULL,
	agent_key bigint,
	PRIMARY KEY (org, key),
	CONSTRAINT agent_logs_key CHECK (agent_key = key),
	CONSTRAINT agent_logs_agent FOREIGN KEY (org, agent_key) REFERENCES agents (org, key),
	CONSTRAINT agent_logs_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
CREATE INDEX agent_logs_deleted ON agent_logs (org, key) WHERE agent_key IS NULL;
CREATE UNIQUE INDEX agent_logs_of_agent ON agent_logs (org, agent_key);

-- The conversations of an agent: the default one, and any that are made. A row counts its messages and is their lock.
-- The model sees a summary of the messages before first_visible. prompts are the positions of the system prompts; the
-- last one is in force. A deleted conversation is hidden, and its messages stay. The messages up to the position
-- embedded have vectors in the space embedded_space, except those that the endpoint refused. Each append sets
-- unembedded.
CREATE TABLE conversations (
	org                  integer     NOT NULL,
	key                  bigserial   NOT NULL,
	id                   text        NOT NULL DEFAULT ('conv-' || gen_random_uuid()),
	agent_key            bigint      NOT NULL,
	is_default           boolean     NOT NULL DEFAULT false,
	summary              text,
	description          text,
	model                text,
	model_settings       jsonb,
	context_window_limit integer,
	hidden               boolean     NOT NULL DEFAULT false,
	messages             integer     NOT NULL DEFAULT 0,
	tokens               bigint      NOT NULL DEFAULT 0,
	first_visible        integer     NOT NULL DEFAULT 1,
	prompts              integer[]   NOT NULL DEFAULT '{1}'::integer[],
	session              integer     NOT NULL DEFAULT 1,
	session_at           timestamptz,
	last_message_at      timestamptz,
	embedded             integer     NOT NULL DEFAULT 0,
	embedded_space       smallint,
	unembedded           boolean     NOT NULL DEFAULT false,
	embed_error          text,
	embed_refused        integer     NOT NULL DEFAULT 0,
	archived_at          timestamptz,
	deleted_at           timestamptz,
	created_at           timestamptz NOT NULL DEFAULT now(),
	updated_at           timestamptz NOT NULL DEFAULT now(),
	-- What a conversation's model sees besides the messages from first_visible on: the earlier messages that are kept,
	-- the message with the summary of the others, and how results of tools are clipped. Every change of these raises
	-- frame. hidden_tokens counts the messages that the model does not see. reported_tokens are a
	-- provider's count of a prompt that ended at reported_position, good for the frame it was made in; fixed_tokens
	-- are what else was in the last prompt. settled_tokens is what was in use after the last compaction, until it
	-- has grown enough for the next; warned says that the model was told how full its window is.
	frame                integer     NOT NULL DEFAULT 0,
	kept                 integer[]   NOT NULL DEFAULT '{}',
	summary_position     integer,
	clipped              jsonb       NOT NULL DEFAULT '[]',
	hidden_tokens        bigint      NOT NULL DEFAULT 0,
	fixed_tokens         integer     NOT NULL DEFAULT 0,
	reported_tokens      integer     NOT NULL DEFAULT 0,
	reported_position    integer     NOT NULL DEFAULT 0,
	settled_tokens       integer     NOT NULL DEFAULT 0,
	warned               boolean     NOT NULL DEFAULT false,
	-- Conversations that were hidden because their agent's messages were reset, not because they were deleted.
	reset_at             timestamptz,
	last_run_completion  timestamptz,
	-- Where a conversation was copied from: its messages up to forked_to are copies of those at the same positions.
	forked_from          bigint,
	forked_to            integer     NOT NULL DEFAULT 0,
	-- A delegated conversation is the fork in which a sub-agent works. only_tools are the tools that may be called
	-- there; NULL is all.
	delegated            boolean     NOT NULL DEFAULT false,
	only_tools           text[],
	-- Changes of the agent's compaction settings for one conversation.
	compaction_settings  jsonb,
	depth                integer     NOT NULL DEFAULT 0,
	-- Until when a program holds the compactions of a conversation back, because a plan of several steps is under
	-- way there.
	held_until           timestamptz,
	-- The last refusal of a prompt of the conversation.
	refusal              jsonb,
	PRIMARY KEY (org, key),
	-- The keys that the references below name.
	CONSTRAINT conversations_agent_key UNIQUE (org, agent_key, key),
	CONSTRAINT conversations_depth CHECK (depth >= 0),
	CONSTRAINT conversations_id_key UNIQUE (org, id),
	CONSTRAINT conversations_context_window_limit CHECK (context_window_limit BETWEEN 1 AND 100000000),
	CONSTRAINT conversations_first_visible CHECK (first_visible BETWEEN 1 AND messages + 1),
	CONSTRAINT conversations_forked_to CHECK (forked_to >= 0),
	CONSTRAINT conversations_summary_position CHECK (summary_position BETWEEN 1 AND messages),
	CONSTRAINT conversations_usage CHECK (least(fixed_tokens, reported_tokens, reported_position,
		settled_tokens) >= 0),
	CONSTRAINT conversations_forked_from FOREIGN KEY (org, agent_key, forked_from)
		REFERENCES conversations (org, agent_key, key) DEFERRABLE INITIALLY DEFERRED,
	CONSTRAINT conversations_log FOREIGN KEY (org, agent_key) REFERENCES agent_logs (org, key),
	CONSTRAINT conversations_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
) WITH (fillfactor = 70);
CREATE INDEX conversations_agent ON conversations (org, agent_key, created_at, key);
CREATE UNIQUE INDEX conversations_default ON conversations (org, agent_key) WHERE is_default;
CREATE INDEX conversations_forks ON conversations (org, agent_key, forked_from) WHERE forked_from IS NOT NULL;
CREATE INDEX conversations_org ON conversations (org, created_at, key);
CREATE INDEX conversations_unembedded ON conversations (org, agent_key, key)
	WHERE unembedded AND (deleted_at IS NULL);

-- Whom a conversation is with, where a program says so. A hand-over keeps the identity's id, also of one that is
-- deleted: the conversation that carries the session on is of the same identity, or both have none.
CREATE TABLE conversation_identities (
	org              integer NOT NULL,
	agent_key        bigint  NOT NULL,
	conversation_key bigint  NOT NULL,
	identity_key     bigint  NOT NULL,
	PRIMARY KEY (org, agent_key, conversation_key),
	CONSTRAINT conversation_identities_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE,
	CONSTRAINT conversation_identities_identity FOREIGN KEY (org, identity_key)
		REFERENCES identities (org, key) ON DELETE CASCADE
);
CREATE INDEX conversation_identities_identity ON conversation_identities (org, identity_key);

-- The log. A row is written once and never changed: seq is its event's, position its place in its conversation,
-- both from 1 without a gap. Messages of one session stand together in time; session is the position of its first.
-- Rows without weights are not searched. Rows of an agent that is gone, or of none, are cleared away behind it:
-- every statement reaches them through their conversation.
CREATE TABLE messages (
	org              integer              NOT NULL,
	key              bigserial            NOT NULL,
	id               uuid                 NOT NULL,
	agent_key        bigint               NOT NULL,
	seq              bigint               NOT NULL,
	conversation_key bigint               NOT NULL,
	position         integer              NOT NULL,
	session          integer              NOT NULL,
	role             text                 NOT NULL,
	name             text,
	content          json COMPRESSION lz4 NOT NULL,
	otid             text,
	otid_sha256      bytea,
	step_id          text,
	run_id           text,
	sender_id        text,
	group_id         text,
	model            text,
	is_err           boolean              NOT NULL DEFAULT false,
	tokens           integer              NOT NULL,
	created_at       timestamptz          NOT NULL,
	lex              sparsevec(16777216),
	terms            bigint[],
	-- The length of a message by which sessions are ranked: a quarter for each character of ASCII, one for any
	-- other. NULL where tokens, which were estimated so until then, is the same.
	length           integer,
	-- What a message was said for: empty for the conversation itself, flush for a silent turn before a compaction,
	-- which prompts leave out.
	purpose          text                 NOT NULL DEFAULT '',
	provenance       jsonb,
	lex_version      smallint             NOT NULL DEFAULT 3,
	-- A provider refused a prompt with the message, which left the view for that: {"status", "message", "trial"}.
	-- The message stays in the log. A trial is a number of its conversation's refusals: the provider is asked
	-- without the messages of the trial, which come back if it refuses that prompt, too.
	refused          jsonb,
	PRIMARY KEY (org, key),
	CONSTRAINT messages_id_key UNIQUE (org, id),
	CONSTRAINT messages_position_key UNIQUE (org, conversation_key, "position"),
	CONSTRAINT messages_provenance CHECK (octet_length(provenance::text) <= 2000),
	CONSTRAINT messages_purpose CHECK (purpose IN ('', 'flush')),
	CONSTRAINT messages_role CHECK (role IN ('system', 'user', 'assistant', 'tool', 'summary')),
	CONSTRAINT messages_seq_key UNIQUE (org, agent_key, seq),
	CONSTRAINT messages_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key)
);
ALTER TABLE messages ALTER COLUMN lex SET STORAGE MAIN;
CREATE INDEX messages_of_run ON messages (org, run_id, "position") WHERE run_id IS NOT NULL;
CREATE INDEX messages_of_step ON messages (org, step_id, "position") WHERE step_id IS NOT NULL;
CREATE UNIQUE INDEX messages_otid_key ON messages (org, agent_key, otid) WHERE otid IS NOT NULL;
CREATE INDEX messages_outdated_words ON messages (org, key) WHERE (lex_version < 3) AND (lex IS NOT NULL);
-- Terms carry their agent in the bits above theirs, so that an entry of the index is one agent's.
CREATE INDEX messages_terms ON messages USING gin (terms);
-- Messages of a time, and the newest ones.
CREATE INDEX messages_time ON messages (org, agent_key, created_at, key);

-- The words of the texts of messages that are too long for one vector, in pieces; the row of the message has those
-- of the first. searched_messages is what a search by words reads. A piece has the position 0 there: the model does
-- not see all of a long text even if it sees its message.
CREATE TABLE message_pieces (
	org              integer             NOT NULL,
	key              bigserial           NOT NULL,
	message_key      bigint              NOT NULL,
	agent_key        bigint              NOT NULL,
	conversation_key bigint              NOT NULL,
	role             text                NOT NULL,
	created_at       timestamptz         NOT NULL,
	lex              sparsevec(16777216) NOT NULL,
	terms            bigint[]            NOT NULL,
	PRIMARY KEY (org, key),
	-- Two references each: a key of messages with all these columns would be one more index for each append.
	CONSTRAINT message_pieces_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key),
	CONSTRAINT message_pieces_message_key_fkey FOREIGN KEY (org, message_key)
		REFERENCES messages (org, key) ON DELETE CASCADE
);
CREATE INDEX message_pieces_message ON message_pieces (org, message_key);
CREATE INDEX message_pieces_scope ON message_pieces (org, agent_key, conversation_key);
CREATE INDEX message_pieces_terms ON message_pieces USING gin (terms);

-- What a search by words reads: messages, and the further pieces of long ones.
CREATE VIEW searched_messages AS
	SELECT key, org, agent_key, conversation_key, position, role, created_at, lex, terms FROM messages
	UNION ALL
	SELECT message_key, org, agent_key, conversation_key, 0, role, created_at, lex, terms FROM message_pieces;

-- Vectors stay inline in a narrow row, with what searches filter by, so that a scan of a scope reads nothing else.
CREATE TABLE message_vectors (
	org              integer     NOT NULL,
	space_id         smallint    NOT NULL,
	message_key      bigint      NOT NULL,
	agent_key        bigint      NOT NULL,
	conversation_key bigint      NOT NULL,
	position         integer     NOT NULL,
	role             text        NOT NULL,
	created_at       timestamptz NOT NULL,
	embedding        halfvec     NOT NULL,
	PRIMARY KEY (org, message_key, space_id),
	CONSTRAINT message_vectors_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key),
	CONSTRAINT message_vectors_message_key_fkey FOREIGN KEY (org, message_key)
		REFERENCES messages (org, key) ON DELETE CASCADE,
	CONSTRAINT message_vectors_space_id_fkey FOREIGN KEY (space_id)
		REFERENCES embedding_spaces (id) ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
CREATE INDEX message_vectors_scope ON message_vectors (org, agent_key, conversation_key, space_id);

-- Calls of tools, each with its result where there is one; an id may come back in another message.
CREATE TABLE tool_calls (
	-- Tables that lacked the column.
	org              integer NOT NULL,
	conversation_key bigint  NOT NULL,
	call_id          text    NOT NULL,
	position         integer NOT NULL,
	name             text    NOT NULL,
	result_position  integer,
	PRIMARY KEY (org, conversation_key, call_id, "position"),
	CONSTRAINT tool_calls_conversation_key_fkey FOREIGN KEY (org, conversation_key)
		REFERENCES conversations (org, key) ON DELETE CASCADE
);
CREATE INDEX tool_calls_open ON tool_calls (org, conversation_key, "position") WHERE result_position IS NULL;

-- Texts that are too long for the log, stored once by what they are; a clip is the place where the log has one.
CREATE TABLE blobs (
	org        integer     NOT NULL,
	sha256     bytea       NOT NULL,
	size_bytes bigint      NOT NULL,
	zstd       boolean     NOT NULL,
	bytes      bytea       NOT NULL,
	used_at    timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (org, sha256),
	CONSTRAINT blobs_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
ALTER TABLE blobs ALTER COLUMN bytes SET STORAGE EXTERNAL;

CREATE TABLE clips (
	org              integer     NOT NULL,
	id               text        NOT NULL,
	sha256           bytea       NOT NULL,
	agent_key        bigint      NOT NULL,
	conversation_key bigint      NOT NULL,
	position         integer,
	part             integer,
	-- The whole of a tool's result that a caller shows its model in part: it belongs to a conversation, and no
	-- message has it.
	created_at       timestamptz,
	PRIMARY KEY (org, id),
	CONSTRAINT clips_place CHECK ((position IS NULL) = (part IS NULL) AND (position IS NULL) =
		(created_at IS NOT NULL)),
	CONSTRAINT clips_agent_key_fkey FOREIGN KEY (org, agent_key) REFERENCES agents (org, key) ON DELETE CASCADE,
	CONSTRAINT clips_blob FOREIGN KEY (org, sha256) REFERENCES blobs (org, sha256),
	CONSTRAINT clips_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE
);
CREATE INDEX clips_agent ON clips (org, agent_key);
CREATE INDEX clips_blob ON clips (org, sha256);
CREATE INDEX clips_conversation ON clips (org, conversation_key);
CREATE INDEX clips_kept ON clips (org, created_at) WHERE "position" IS NULL;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
