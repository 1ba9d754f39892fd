-- Who changed a policy, where and when: place is organization, agent or conversation, policy what was set; null took it
-- back. seq is the event in the agent's log.
CREATE TABLE policy_changes (
	org              integer     NOT NULL,
	key              bigint      GENERATED ALWAYS AS IDENTITY,
	place            text        NOT NULL,
	agent_key        bigint,
	conversation_key bigint,
	author           text        NOT NULL,
	policy           jsonb,
	seq              bigint,
	at               timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (org, key),
	CONSTRAINT policy_changes_agent FOREIGN KEY (org, agent_key) REFERENCES agents (org, key) ON DELETE CASCADE,
	CONSTRAINT policy_changes_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE,
	CONSTRAINT policy_changes_place CHECK (place IN ('organization', 'agent', 'conversation'))
);
CREATE INDEX policy_changes_of_agent ON policy_changes (org, agent_key, conversation_key);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
