-- The tools that an organization's programs run themselves, as definitions: a model is given json_schema, and its calls wait for
-- the program. source_code is kept for its readers; it is never run.
CREATE TABLE tools (
	org                       integer     NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	key                       bigint      GENERATED ALWAYS AS IDENTITY,
	id                        text        NOT NULL DEFAULT 'tool-' || gen_random_uuid(),
	name                      text        NOT NULL,
	description               text        NOT NULL,
	json_schema               json        NOT NULL,
	args_json_schema          json,
	source_code               text,
	source_type               text        NOT NULL,
	tags                      text[]      NOT NULL DEFAULT '{}',
	return_char_limit         integer     NOT NULL,
	pip_requirements          json,
	npm_requirements          json,
	default_requires_approval boolean,
	enable_parallel_execution boolean,
	metadata                  json,
	created_at                timestamptz NOT NULL DEFAULT now(),
	updated_at                timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (org, key),
	CONSTRAINT tools_id_key UNIQUE (org, id),
	CONSTRAINT tools_name_key UNIQUE (org, name),
	CONSTRAINT tools_name CHECK (name ~ '^[a-zA-Z0-9_-]{1,64}$'),
	CONSTRAINT tools_return_char_limit CHECK (return_char_limit BETWEEN 1 AND 1000000)
);
CREATE INDEX tools_by_creation ON tools (org, created_at, key);

-- The definitions that an agent's model is given.
CREATE TABLE agent_tools (
	org         integer     NOT NULL,
	agent_id    text        NOT NULL,
	tool_key    bigint      NOT NULL,
	attached_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (org, agent_id, tool_key),
	CONSTRAINT agent_tools_agent FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	CONSTRAINT agent_tools_tool FOREIGN KEY (org, tool_key) REFERENCES tools (org, key) ON DELETE CASCADE
);
CREATE INDEX agent_tools_tool ON agent_tools (org, tool_key);

CREATE TRIGGER tools_keep_place AFTER DELETE ON tools
	REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION keep_deleted_places();

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
