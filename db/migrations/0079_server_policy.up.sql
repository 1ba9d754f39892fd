-- The policies that the operator set for the agents of all organizations: the newest row holds, before LOCI_POLICY. Null
-- took the policy back. author is the id of a key, or empty.
CREATE TABLE server_policies (
	key    bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	policy jsonb,
	author text        NOT NULL,
	at     timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- When an update last changed what the agent's system prompt shows, which the prompt says.
ALTER TABLE agents ADD COLUMN system_changed_at timestamptz NOT NULL DEFAULT now();
UPDATE agents SET system_changed_at = updated_at;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
