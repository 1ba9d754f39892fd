-- What models were sent, and how conversations are compacted.

-- Pieces of the prompts that were handed out for an agent, by what they are: successive prompts share nearly all of
-- theirs. They go with their agent.
CREATE TABLE prompt_parts (
	org       integer               NOT NULL,
	agent_key bigint                NOT NULL,
	sha256    bytea                 NOT NULL,
	bytes     bytea COMPRESSION lz4 NOT NULL,
	-- When a piece was last in a prompt that was handed out, to the hour: a sweep leaves newer ones alone.
	used_at   timestamptz           NOT NULL DEFAULT now(),
	PRIMARY KEY (org, agent_key, sha256),
	CONSTRAINT prompt_parts_agent_key_fkey FOREIGN KEY (org, agent_key)
		REFERENCES agents (org, key) ON DELETE CASCADE
);

-- The prompts. seq is the position of the agent's newest event at that time. parts are the hashes of the pieces in
-- order, and sha256 is the hash of the whole. The view went from first_position to last_position; both are 0 where it
-- was empty. A prompt that is handed out again unchanged has one row.
CREATE TABLE prompts (
	org              integer     NOT NULL,
	key              bigserial   NOT NULL,
	agent_key        bigint      NOT NULL,
	conversation_key bigint      NOT NULL,
	format           text        NOT NULL,
	seq              bigint      NOT NULL,
	context_window   integer     NOT NULL,
	tokens           json        NOT NULL,
	sha256           bytea       NOT NULL,
	parts            bytea[]     NOT NULL,
	first_position   integer     NOT NULL,
	last_position    integer     NOT NULL,
	handed_out_at    timestamptz NOT NULL DEFAULT now(),
	-- The calls of tools that waited for their results when a prompt was handed out.
	pending          jsonb       NOT NULL DEFAULT '[]',
	PRIMARY KEY (org, key),
	CONSTRAINT prompts_once UNIQUE (org, conversation_key, seq, sha256),
	CONSTRAINT prompts_format CHECK (format IN ('openai', 'anthropic', 'responses')),
	CONSTRAINT prompts_parts CHECK (cardinality(parts) > 0),
	CONSTRAINT prompts_agent_key_fkey FOREIGN KEY (org, agent_key) REFERENCES agents (org, key) ON DELETE CASCADE,
	CONSTRAINT prompts_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE
);
CREATE INDEX prompts_age ON prompts (org, handed_out_at);
CREATE INDEX prompts_agent ON prompts (org, agent_key);

-- How many tokens the provider of a model counts for one that Loci counts, by the usage that an organization
-- reported: of whole prompts, and of the messages between two reports (NULL before there were two).
CREATE TABLE model_factors (
	org    integer          NOT NULL,
	-- empty: agents that name none
	model  text             NOT NULL,
	factor double precision NOT NULL,
	growth double precision,
	PRIMARY KEY (org, model),
	CONSTRAINT model_factors_range CHECK (factor BETWEEN 0.9 AND 2 AND growth BETWEEN 0.9 AND 2),
	CONSTRAINT model_factors_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);

-- Compactions: what left a conversation's view, and what the view was before. frame is the one that it made; the
-- same conversation cannot be compacted twice from one frame. prompt_tokens and output_tokens are what model_calls
-- took together as their provider counted; why says what kept the summary from being made in the first way.
CREATE TABLE compactions (
	org              integer     NOT NULL,
	key              bigserial   NOT NULL,
	id               text        NOT NULL DEFAULT ('compaction-' || gen_random_uuid()),
	conversation_key bigint      NOT NULL,
	frame            integer     NOT NULL,
	trigger          text        NOT NULL,
	mode             text        NOT NULL,
	how              text,
	model            text,
	model_calls      integer     NOT NULL,
	prompt_tokens    bigint      NOT NULL,
	output_tokens    bigint      NOT NULL,
	why              text,
	from_position    integer,
	to_position      integer,
	from_seq         bigint,
	to_seq           bigint,
	summary_position integer,
	window_tokens    integer     NOT NULL,
	tokens_before    integer     NOT NULL,
	tokens_after     integer     NOT NULL,
	messages_before  integer     NOT NULL,
	messages_after   integer     NOT NULL,
	duration_ms      bigint      NOT NULL,
	before           jsonb       NOT NULL,
	created_at       timestamptz NOT NULL DEFAULT now(),
	reverted_at      timestamptz,
	-- The position of a conversation's last message when it was compacted, before its summary.
	after_position   integer     NOT NULL,
	-- The policy that shortened how messages are shown before a prompt, how many edits each of its steps made and
	-- the tokens that they saved, and the edits themselves; null of a compaction.
	policy           text,
	steps            jsonb,
	edits            jsonb,
	provenance       jsonb,
	PRIMARY KEY (org, key),
	CONSTRAINT compactions_frame_key UNIQUE (org, conversation_key, frame),
	CONSTRAINT compactions_id_key UNIQUE (org, id),
	CONSTRAINT compactions_provenance CHECK (octet_length(provenance::text) <= 2000),
	CONSTRAINT compactions_conversation_key_fkey FOREIGN KEY (org, conversation_key)
		REFERENCES conversations (org, key) ON DELETE CASCADE
);
CREATE INDEX compactions_org ON compactions (org, created_at, key);

-- Compactions under way. The request that compacts a conversation holds a claim and renews it, so that others wait
-- for it instead of asking a model for the same summary; the claim of a server that stopped ends at held_until.
CREATE TABLE compaction_claims (
	org              integer     NOT NULL,
	conversation_key bigint      NOT NULL,
	holder           uuid        NOT NULL,
	held_until       timestamptz NOT NULL,
	PRIMARY KEY (org, conversation_key),
	CONSTRAINT compaction_claims_conversation_key_fkey FOREIGN KEY (org, conversation_key)
		REFERENCES conversations (org, key) ON DELETE CASCADE
);

-- The working memory of a conversation. version counts its changes; a row is their lock. The messages up to the
-- position checked were compared with the evidence of the entries, and those up to turned were taken up by the
-- automatic mode.
CREATE TABLE working_memories (
	org              integer     NOT NULL,
	agent_key        bigint      NOT NULL,
	conversation_key bigint      NOT NULL,
	version          integer     NOT NULL DEFAULT 0,
	record           jsonb       NOT NULL DEFAULT '{}',
	checked          integer     NOT NULL DEFAULT 0,
	turned           integer     NOT NULL DEFAULT 0,
	updated_at       timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (org, conversation_key),
	CONSTRAINT working_memories_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE
);

-- What a working memory was at each of its versions, who made it so, and the event of the change.
CREATE TABLE working_memory_versions (
	org              integer     NOT NULL,
	conversation_key bigint      NOT NULL,
	version          integer     NOT NULL,
	author           jsonb       NOT NULL,
	record           jsonb       NOT NULL,
	seq              bigint      NOT NULL,
	at               timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (org, conversation_key, version),
	CONSTRAINT working_memory_versions_memory FOREIGN KEY (org, conversation_key)
		REFERENCES working_memories (org, conversation_key) ON DELETE CASCADE
);

-- Silent turns: at most one for each view of a conversation, so that no compaction has two. The turn's instructions
-- are at position. A checkpoint is settled once the compaction after it was made, or there was nothing to
-- compact.
CREATE TABLE flushes (
	org               integer     NOT NULL,
	id                text        NOT NULL DEFAULT ('flush-' || gen_random_uuid()),
	agent_key         bigint      NOT NULL,
	conversation_key  bigint      NOT NULL,
	view              integer     NOT NULL,
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
	CONSTRAINT flushes_kind CHECK (kind IN ('flush', 'checkpoint')),
	CONSTRAINT flushes_reason CHECK (reason IN ('compaction', 'tokens')),
	CONSTRAINT flushes_status CHECK (status IN ('open', 'done', 'nothing', 'failed', 'expired',
		'overtaken', 'skipped')),
	CONSTRAINT flushes_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE
);

-- Hand-overs: what a session did, decided and learned, as updates of working memory and memory files. One stands
-- for the messages of a conversation up to a position; material is what was said there, until the hand-over is
-- made. The next conversation of the agent that begins is taken_by.
CREATE TABLE handovers (
	org              integer     NOT NULL,
	key              bigserial   NOT NULL,
	id               text        NOT NULL DEFAULT ('handover-' || gen_random_uuid()),
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
	identity_id      text,
	provenance       jsonb,
	PRIMARY KEY (org, key),
	CONSTRAINT handovers_id_key UNIQUE (org, id),
	CONSTRAINT handovers_once UNIQUE (org, conversation_key, "position"),
	CONSTRAINT handovers_provenance CHECK (octet_length(provenance::text) <= 2000),
	CONSTRAINT handovers_how CHECK (how IN ('model', 'extracted')),
	CONSTRAINT handovers_status CHECK (status IN ('running', 'waiting', 'done', 'empty', 'failed')),
	CONSTRAINT handovers_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE,
	CONSTRAINT handovers_taken FOREIGN KEY (org, agent_key, taken_by)
		REFERENCES conversations (org, agent_key, key) DEFERRABLE INITIALLY DEFERRED
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
	provenance   jsonb,
	PRIMARY KEY (org, handover_key, number),
	CONSTRAINT handover_updates_provenance CHECK (octet_length(provenance::text) <= 2000),
	CONSTRAINT handover_updates_section CHECK (section IN ('done', 'decided', 'learned', 'open', 'next', 'entity')),
	CONSTRAINT handover_updates_status CHECK (status IN ('proposed', 'applied', 'rejected', 'refused')),
	CONSTRAINT handover_updates_handover FOREIGN KEY (org, handover_key)
		REFERENCES handovers (org, key) ON DELETE CASCADE
);

-- Who changed a policy, where and when: place is organization, agent or conversation, policy what was set; null
-- took it back. seq is the event in the agent's log.
CREATE TABLE policy_changes (
	org              integer     NOT NULL,
	key              bigserial   NOT NULL,
	place            text        NOT NULL,
	agent_key        bigint,
	conversation_key bigint,
	author           text        NOT NULL,
	policy           jsonb,
	seq              bigint,
	at               timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (org, key),
	CONSTRAINT policy_changes_place CHECK (place IN ('organization', 'agent', 'conversation')),
	CONSTRAINT policy_changes_agent FOREIGN KEY (org, agent_key) REFERENCES agents (org, key) ON DELETE CASCADE,
	CONSTRAINT policy_changes_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE
);
CREATE INDEX policy_changes_of_agent ON policy_changes (org, agent_key, conversation_key);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
