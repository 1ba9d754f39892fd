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

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
