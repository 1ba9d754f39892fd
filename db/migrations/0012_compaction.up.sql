-- What a conversation's model sees beside the messages from first_visible on: those before it that are kept, the message with the summary
-- that stands for the others, and how results of tools are clipped. frame is raised by every change of these, and hidden_tokens are those of
-- what is not seen. reported_tokens are a provider's count of a prompt that ended at reported_position, good for the frame it was made in;
-- fixed_tokens are what else was in the last prompt. settled_tokens is what was in use after the last compaction, until it has grown enough
-- for the next; warned says that the model was told how full its window is.
ALTER TABLE conversations
	ADD COLUMN frame             integer   NOT NULL DEFAULT 0,
	ADD COLUMN kept              integer[] NOT NULL DEFAULT '{}',
	ADD COLUMN summary_position  integer,
	ADD COLUMN clipped           jsonb     NOT NULL DEFAULT '[]',
	ADD COLUMN hidden_tokens     bigint    NOT NULL DEFAULT 0,
	ADD COLUMN fixed_tokens      integer   NOT NULL DEFAULT 0,
	ADD COLUMN reported_tokens   integer   NOT NULL DEFAULT 0,
	ADD COLUMN reported_position integer   NOT NULL DEFAULT 0,
	ADD COLUMN settled_tokens    integer   NOT NULL DEFAULT 0,
	ADD COLUMN warned            boolean   NOT NULL DEFAULT false,
	ADD CONSTRAINT conversations_summary_position CHECK (summary_position BETWEEN 1 AND messages),
	ADD CONSTRAINT conversations_usage CHECK (least(fixed_tokens, reported_tokens, reported_position, settled_tokens) >= 0);

ALTER TABLE messages DROP CONSTRAINT messages_role;
ALTER TABLE messages ADD CONSTRAINT messages_role CHECK (role IN ('system', 'user', 'assistant', 'tool', 'summary')) NOT VALID;

-- Compactions: what left a conversation's view, and what the view was before. frame is the one that it made; the same conversation cannot
-- be compacted twice from one frame. prompt_tokens and output_tokens are what model_calls took together as their provider counted; why says
-- what kept the summary from being made in the first way.
CREATE TABLE compactions (
	key              bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id               text        NOT NULL DEFAULT 'compaction-' || gen_random_uuid(),
	org              integer     NOT NULL,
	conversation_key bigint      NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
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
	CONSTRAINT compactions_id_key UNIQUE (id),
	CONSTRAINT compactions_frame_key UNIQUE (conversation_key, frame)
);
CREATE INDEX compactions_org ON compactions (org, created_at, key);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
