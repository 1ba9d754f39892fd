-- Compactions under way. The request that compacts a conversation holds a claim and renews it, so that others wait for it
-- instead of asking a model for the same summary; the claim of a server that stopped ends at held_until.
CREATE TABLE compaction_claims (
	org              integer     NOT NULL,
	conversation_key bigint      NOT NULL REFERENCES conversations (key) ON DELETE CASCADE,
	holder           uuid        NOT NULL,
	held_until       timestamptz NOT NULL,
	PRIMARY KEY (org, conversation_key)
);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
