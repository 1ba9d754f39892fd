-- Sub-agents: a piece of work that an agent's conversation hands to another conversation, of an agent made for it or of a fork,
-- and its result. agent_id is null when the sub-agent was deleted.
CREATE TABLE children (
	org                 integer     NOT NULL,
	key                 bigint      GENERATED ALWAYS AS IDENTITY,
	id                  text        NOT NULL DEFAULT 'child-' || gen_random_uuid(),
	parent_key          bigint      NOT NULL,
	parent_conversation bigint      NOT NULL,
	agent_key           bigint      NOT NULL,
	conversation_key    bigint      NOT NULL,
	mode                text        NOT NULL,
	name                text        NOT NULL,
	task                text        NOT NULL,
	depth               integer     NOT NULL,
	otid                text,
	call_id             text,
	call_position       integer,
	runs                boolean     NOT NULL,
	after_position      integer     NOT NULL, -- of the conversation, before its task
	status              text        NOT NULL DEFAULT 'working',
	result              text,
	message_id          text,
	created_at          timestamptz NOT NULL DEFAULT now(),
	returned_at         timestamptz,
	PRIMARY KEY (org, key),
	CONSTRAINT children_id_key UNIQUE (org, id),
	CONSTRAINT children_otid_key UNIQUE (org, parent_key, otid),
	CONSTRAINT children_conversation_key UNIQUE (org, conversation_key),
	CONSTRAINT children_parent FOREIGN KEY (org, parent_key) REFERENCES agents (org, key) ON DELETE CASCADE,
	CONSTRAINT children_parent_conversation FOREIGN KEY (org, parent_key, parent_conversation)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE,
	CONSTRAINT children_own_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE,
	CONSTRAINT children_mode CHECK (mode IN ('blank', 'brief', 'fork')),
	CONSTRAINT children_status CHECK (status IN ('working', 'returned', 'failed')),
	CONSTRAINT children_returned CHECK ((status = 'working') = (returned_at IS NULL)),
	CONSTRAINT children_call CHECK ((call_id IS NULL) = (call_position IS NULL))
);
CREATE INDEX children_of_parent ON children (org, parent_key, created_at, key);
CREATE INDEX children_of_agent ON children (org, agent_key);
CREATE INDEX children_of_conversation ON children (org, parent_key, parent_conversation);

-- A delegated conversation is the fork in which a sub-agent works. only_tools are the tools that may be called there; NULL is all.
ALTER TABLE conversations
	ADD COLUMN delegated  boolean NOT NULL DEFAULT false,
	ADD COLUMN only_tools text[];

-- Whether an agent can only read a block, though others may change it.
ALTER TABLE agent_blocks ADD COLUMN read_only boolean NOT NULL DEFAULT false;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
