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

-- Hand-overs: what a session did, decided and learned, as updates of working memory and memory files. One stands for the
-- messages of a conversation up to a position; material is what was said there, until the hand-over is made. The next
-- conversation of the agent that begins is taken_by.
CREATE TABLE handovers (
	org              integer     NOT NULL,
	key              bigint      GENERATED ALWAYS AS IDENTITY,
	id               text        NOT NULL DEFAULT 'handover-' || gen_random_uuid(),
	agent_key        bigint      NOT NULL,
	conversation_key bigint      NOT NULL,
	position         integer     NOT NULL,
	status           text        NOT NULL DEFAULT 'running',
	pending          boolean     NOT NULL,
	carry            boolean     NOT NULL,
	material         jsonb,
	how              text,
	why              text,
	taken_by         bigint,
	created_at       timestamptz NOT NULL DEFAULT now(),
	ended_at         timestamptz,
	PRIMARY KEY (org, key),
	CONSTRAINT handovers_id_key UNIQUE (org, id),
	CONSTRAINT handovers_once UNIQUE (org, conversation_key, position),
	CONSTRAINT handovers_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE,
	CONSTRAINT handovers_taken FOREIGN KEY (org, agent_key, taken_by)
		REFERENCES conversations (org, agent_key, key) ON DELETE SET NULL (taken_by),
	CONSTRAINT handovers_status CHECK (status IN ('running', 'waiting', 'done', 'empty', 'failed')),
	CONSTRAINT handovers_how CHECK (how IN ('model', 'extracted'))
);
CREATE INDEX handovers_of_agent ON handovers (org, agent_key, key);
CREATE INDEX handovers_taken ON handovers (org, agent_key, taken_by);

-- The updates of a hand-over, each with the positions in the agent's log that it came from.
CREATE TABLE handover_updates (
	org          integer     NOT NULL,
	handover_key bigint      NOT NULL,
	number       integer     NOT NULL,
	section      text        NOT NULL,
	text         text        NOT NULL,
	seqs         bigint[]    NOT NULL,
	target       text        NOT NULL,
	entity       text,
	status       text        NOT NULL DEFAULT 'proposed',
	why          text,
	decided_at   timestamptz,
	PRIMARY KEY (org, handover_key, number),
	CONSTRAINT handover_updates_handover FOREIGN KEY (org, handover_key) REFERENCES handovers (org, key) ON DELETE CASCADE,
	CONSTRAINT handover_updates_section CHECK (section IN ('done', 'decided', 'learned', 'open', 'next', 'entity')),
	CONSTRAINT handover_updates_status CHECK (status IN ('proposed', 'applied', 'rejected', 'refused'))
);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
