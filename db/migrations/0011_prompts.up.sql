-- Pieces of the prompts that were handed out for an agent, by what they are: successive prompts share nearly all of theirs. They go with
-- their agent.
CREATE TABLE prompt_parts (
	agent_key bigint  NOT NULL REFERENCES agents (key) ON DELETE CASCADE,
	sha256    bytea   NOT NULL,
	org       integer NOT NULL,
	bytes     bytea   NOT NULL,
	PRIMARY KEY (agent_key, sha256)
);

-- The prompts: seq is the position of the agent's newest event then, parts the hashes of the pieces in order, sha256 that of all of them
-- together; the view went from first_position to last_position, 0 where it was empty. One that is handed out again unchanged has one row.
CREATE TABLE prompts (
	key              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	org              integer     NOT NULL,
	agent_key        bigint      NOT NULL REFERENCES agents (key) ON DELETE CASCADE,
	conversation_key bigint      NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
	format           text        NOT NULL,
	seq              bigint      NOT NULL,
	context_window   integer     NOT NULL,
	tokens           json        NOT NULL,
	sha256           bytea       NOT NULL,
	parts            bytea[]     NOT NULL,
	first_position   integer     NOT NULL,
	last_position    integer     NOT NULL,
	handed_out_at    timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT prompts_once UNIQUE (conversation_key, seq, sha256),
	CONSTRAINT prompts_format CHECK (format IN ('openai', 'anthropic')),
	CONSTRAINT prompts_parts CHECK (cardinality(parts) > 0)
);
CREATE INDEX prompts_agent ON prompts (agent_key);

DO $$
BEGIN
	ALTER TABLE prompt_parts ALTER COLUMN bytes SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
	NULL;
END $$;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
