-- What was put in behind a message that a program sent to a provider through this server. The message has the otid; the
-- next request of the program gets the same note at the same place, so that the provider's cache stays valid.
CREATE TABLE recalled_notes (
	org              integer     NOT NULL,
	agent_key        bigint      NOT NULL,
	otid             text        NOT NULL,
	conversation_key bigint      NOT NULL,
	note             text        NOT NULL,
	created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (org, agent_key, otid, conversation_key),
	CONSTRAINT recalled_notes_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE
);
CREATE INDEX recalled_notes_of_conversation ON recalled_notes (org, agent_key, conversation_key);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
