-- Whom a conversation is with, where a program says so. A hand-over keeps the identity's id, also of one that is deleted: the
-- conversation that carries the session on is of the same identity, or both have none.
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

ALTER TABLE handovers ADD COLUMN identity_id text;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
