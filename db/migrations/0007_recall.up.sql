-- What a caller said is redacted with a key of its organization: the same secret reads the same, and can be guessed from nothing.
ALTER TABLE organizations ADD COLUMN redaction_key bytea NOT NULL
	DEFAULT decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex');

-- How far a reader of an agent's events has come.
CREATE TABLE event_consumers (
	agent_id   text        NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
	name       text        NOT NULL,
	org        integer     NOT NULL,
	seq        bigint      NOT NULL DEFAULT 0,
	created_at timestamptz NOT NULL DEFAULT now(),
	updated_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (agent_id, name),
	CONSTRAINT event_consumers_name CHECK (length(name) BETWEEN 1 AND 200),
	CONSTRAINT event_consumers_seq CHECK (seq >= 0)
);

-- The conversations of an agent: its default one, and as many as are made. The row counts its messages and is their lock; of those before
-- first_visible the model sees a summary. prompts are the places of its compiled system prompts, of which the last is in force. A deleted
-- one is hidden; its messages stay. Up to embedded its messages have their vectors in the space embedded_space, but for as many as the
-- endpoint refused; each append says that there are unembedded ones.
CREATE TABLE conversations (
	key                  bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id                   text        NOT NULL DEFAULT 'conv-' || gen_random_uuid(),
	org                  integer     NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	agent_key            bigint      NOT NULL REFERENCES agents (key) ON DELETE CASCADE,
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
	prompts              integer[]   NOT NULL DEFAULT '{1}',
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
	CONSTRAINT conversations_id_key UNIQUE (id),
	CONSTRAINT conversations_context_window_limit CHECK (context_window_limit BETWEEN 1 AND 100000000),
	CONSTRAINT conversations_first_visible CHECK (first_visible BETWEEN 1 AND messages + 1)
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX conversations_default ON conversations (agent_key) WHERE is_default;
CREATE INDEX conversations_agent ON conversations (agent_key, created_at, key);
CREATE INDEX conversations_org ON conversations (org, created_at, key);
CREATE INDEX conversations_unembedded ON conversations (agent_key, key) WHERE unembedded AND deleted_at IS NULL;

-- The log. A row is written once and never changed: seq is its event's, position its place in its conversation, both from 1 without a gap.
-- Messages of one session stand together in time; session is the position of its first. Rows without weights are not searched. Rows of an
-- agent that is gone, or of none, are cleared away behind it: every statement reaches them through their conversation.
CREATE TABLE messages (
	key              bigint              GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id               uuid                NOT NULL,
	org              integer             NOT NULL,
	agent_key        bigint              NOT NULL,
	seq              bigint              NOT NULL,
	conversation_key bigint              NOT NULL,
	position         integer             NOT NULL,
	session          integer             NOT NULL,
	role             text                NOT NULL,
	name             text,
	content          json                NOT NULL,
	otid             text,
	otid_sha256      bytea,
	step_id          text,
	run_id           text,
	sender_id        text,
	group_id         text,
	model            text,
	is_err           boolean             NOT NULL DEFAULT false,
	tokens           integer             NOT NULL,
	created_at       timestamptz         NOT NULL,
	lex              sparsevec(16777216),
	terms            bigint[],
	CONSTRAINT messages_id_key UNIQUE (id),
	CONSTRAINT messages_seq_key UNIQUE (agent_key, seq),
	CONSTRAINT messages_position_key UNIQUE (conversation_key, position),
	CONSTRAINT messages_role CHECK (role IN ('system', 'user', 'assistant', 'tool'))
);
-- A search reads lex of every row of a scope: it stays in the row, and the content goes out where both do not fit.
ALTER TABLE messages ALTER COLUMN lex SET STORAGE MAIN;
CREATE UNIQUE INDEX messages_otid_key ON messages (agent_key, otid) WHERE otid IS NOT NULL;
CREATE INDEX messages_org ON messages (org, key);
-- Terms carry their agent in the bits above theirs, so that an entry of the index is one agent's.
CREATE INDEX messages_terms ON messages USING gin (terms);

-- Calls of tools, each with its result where there is one; an id may come back in another message.
CREATE TABLE tool_calls (
	conversation_key bigint  NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
	call_id          text    NOT NULL,
	position         integer NOT NULL,
	name             text    NOT NULL,
	result_position  integer,
	PRIMARY KEY (conversation_key, call_id, position)
);
CREATE INDEX tool_calls_open ON tool_calls (conversation_key, position) WHERE result_position IS NULL;

-- Texts that are too long for the log, stored once by what they are; a clip is the place where the log has one.
CREATE TABLE blobs (
	org        integer     NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	sha256     bytea       NOT NULL,
	size_bytes bigint      NOT NULL,
	zstd       boolean     NOT NULL,
	bytes      bytea       NOT NULL,
	used_at    timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (org, sha256)
);
ALTER TABLE blobs ALTER COLUMN bytes SET STORAGE EXTERNAL;
CREATE TABLE clips (
	id               text    PRIMARY KEY,
	org              integer NOT NULL,
	sha256           bytea   NOT NULL,
	agent_key        bigint  NOT NULL REFERENCES agents (key) ON DELETE CASCADE,
	conversation_key bigint  NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
	position         integer NOT NULL,
	part             integer NOT NULL,
	CONSTRAINT clips_blob FOREIGN KEY (org, sha256) REFERENCES blobs (org, sha256)
);
CREATE INDEX clips_blob ON clips (org, sha256);
CREATE INDEX clips_agent ON clips (agent_key);
CREATE INDEX clips_conversation ON clips (conversation_key);

-- Agents that were deleted and whose messages are still to be cleared away.
CREATE TABLE forgotten_agents (
	agent_key bigint PRIMARY KEY
);

-- Vectors stay inline in a narrow row, with what searches filter by, so that a scan of a scope reads nothing else.
CREATE TABLE message_vectors (
	space_id         smallint    NOT NULL REFERENCES embedding_spaces (id) ON DELETE CASCADE,
	message_key      bigint      NOT NULL REFERENCES messages (key) ON DELETE CASCADE,
	org              integer     NOT NULL,
	agent_key        bigint      NOT NULL,
	conversation_key bigint      NOT NULL,
	position         integer     NOT NULL,
	role             text        NOT NULL,
	created_at       timestamptz NOT NULL,
	embedding        halfvec     NOT NULL,
	PRIMARY KEY (message_key, space_id)
) WITH (toast_tuple_target = 8160);
CREATE INDEX message_vectors_scope ON message_vectors (space_id, agent_key, conversation_key);

DO $$
BEGIN
	ALTER TABLE messages ALTER COLUMN content SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
	NULL;
END $$;

CREATE TRIGGER conversations_keep_place AFTER DELETE ON conversations
	REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION keep_deleted_places();

-- Agents that are there already get their conversation, and its first message: their instructions.
INSERT INTO conversations (org, agent_key, is_default, messages, tokens, session_at, last_message_at)
SELECT org, key, true, 1, (length(system) + 3) / 4 + 4, now(), now() FROM agents;
UPDATE agent_heads SET seq = seq + 1;
INSERT INTO messages (id, org, agent_key, seq, conversation_key, position, session, role, content, tokens, created_at)
SELECT gen_random_uuid(), a.org, a.key, h.seq, c.key, 1, 1, 'system',
       json_build_array(json_build_object('type', 'text', 'text', a.system)), c.tokens, now()
FROM agents a JOIN agent_heads h ON h.agent_id = a.id JOIN conversations c ON c.agent_key = a.key;
INSERT INTO events (agent_id, seq, org, type, ref_id, at)
SELECT a.id, m.seq, m.org, 'message', 'message-' || m.id, m.created_at FROM messages m JOIN agents a ON a.key = m.agent_key;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
