-- Definitions of sub-agents, which an agent's conversations start by name. definition has what they are given.
CREATE TABLE subagents (
	org         integer     NOT NULL,
	key         bigserial   NOT NULL,
	agent_key   bigint      NOT NULL,
	name        text        NOT NULL,
	description text        NOT NULL,
	definition  jsonb       NOT NULL,
	created_at  timestamptz NOT NULL DEFAULT now(),
	updated_at  timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (org, key),
	CONSTRAINT subagents_name_key UNIQUE (org, agent_key, name),
	CONSTRAINT subagents_agent FOREIGN KEY (org, agent_key) REFERENCES agents (org, key) ON DELETE CASCADE
);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
