-- What a message was said for: empty for the conversation itself, flush for a silent turn before a compaction, which
-- prompts leave out. The constraint is not checked for older rows, which are all empty.
ALTER TABLE messages ADD COLUMN purpose text NOT NULL DEFAULT '';
ALTER TABLE messages ADD CONSTRAINT messages_purpose CHECK (purpose IN ('', 'flush')) NOT VALID;

-- Silent turns: at most one for each view of a conversation, so that no compaction has two. position is that of the
-- turn's instructions. A checkpoint is settled once the compaction after it was made, or there was nothing to compact.
CREATE TABLE flushes (
	org               integer     NOT NULL,
	agent_key         bigint      NOT NULL,
	conversation_key  bigint      NOT NULL,
	view              integer     NOT NULL,
	id                text        NOT NULL DEFAULT 'flush-' || gen_random_uuid(),
	kind              text        NOT NULL,
	reason            text        NOT NULL,
	by_caller         boolean     NOT NULL,
	status            text        NOT NULL DEFAULT 'open',
	why               text,
	position          integer     NOT NULL,
	steps             integer     NOT NULL DEFAULT 0,
	calls             integer     NOT NULL DEFAULT 0,
	prompt_tokens     integer     NOT NULL DEFAULT 0,
	completion_tokens integer     NOT NULL DEFAULT 0,
	settled           boolean     NOT NULL DEFAULT false,
	deadline          timestamptz NOT NULL,
	created_at        timestamptz NOT NULL DEFAULT now(),
	ended_at          timestamptz,
	PRIMARY KEY (org, conversation_key, view),
	CONSTRAINT flushes_id_key UNIQUE (org, id),
	CONSTRAINT flushes_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE,
	CONSTRAINT flushes_kind CHECK (kind IN ('flush', 'checkpoint')),
	CONSTRAINT flushes_reason CHECK (reason IN ('compaction', 'tokens')),
	CONSTRAINT flushes_status CHECK (status IN ('open', 'done', 'nothing', 'failed', 'expired', 'overtaken', 'skipped'))
);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
