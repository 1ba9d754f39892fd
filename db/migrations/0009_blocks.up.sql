-- Core memory blocks. version counts the changes of a block, from 1; its row is their lock.
CREATE TABLE blocks (
	key         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id          text        NOT NULL DEFAULT 'block-' || gen_random_uuid(),
	org         integer     NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	label       text        NOT NULL,
	description text,
	value       text        NOT NULL,
	limit_chars integer     NOT NULL DEFAULT 100000,
	read_only   boolean     NOT NULL DEFAULT false,
	hidden      boolean     NOT NULL DEFAULT false,
	tags        text[]      NOT NULL DEFAULT '{}',
	metadata    jsonb       NOT NULL DEFAULT '{}',
	template    jsonb       NOT NULL DEFAULT '{}',
	version     integer     NOT NULL DEFAULT 1,
	created_at  timestamptz NOT NULL DEFAULT now(),
	updated_at  timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT blocks_id_key UNIQUE (id),
	CONSTRAINT blocks_label_key UNIQUE (key, label),
	CONSTRAINT blocks_label CHECK (label ~ '^[a-zA-Z0-9_/-]{1,50}$'),
	CONSTRAINT blocks_limit CHECK (limit_chars BETWEEN 1 AND 10000000),
	CONSTRAINT blocks_value_length CHECK (length(value) <= limit_chars)
);
CREATE INDEX blocks_org ON blocks (org, created_at, key);
CREATE INDEX blocks_tags ON blocks USING gin (tags);

-- What a block was at each of its versions, and who made it so.
CREATE TABLE block_versions (
	block_key   bigint      NOT NULL REFERENCES blocks (key) ON DELETE CASCADE,
	version     integer     NOT NULL,
	org         integer     NOT NULL,
	author      text        NOT NULL,
	label       text        NOT NULL,
	description text,
	value       text        NOT NULL,
	limit_chars integer     NOT NULL,
	read_only   boolean     NOT NULL,
	at          timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (block_key, version)
);

-- The blocks of agents, each label once in an agent, whatever the block is renamed to.
CREATE TABLE agent_blocks (
	agent_id    text        NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
	block_key   bigint      NOT NULL,
	org         integer     NOT NULL,
	label       text        NOT NULL,
	attached_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (agent_id, block_key),
	CONSTRAINT agent_blocks_label_key UNIQUE (agent_id, label),
	CONSTRAINT agent_blocks_block FOREIGN KEY (block_key, label) REFERENCES blocks (key, label) ON UPDATE CASCADE ON DELETE CASCADE
);
CREATE INDEX agent_blocks_block ON agent_blocks (block_key, label);

DO $$
BEGIN
	ALTER TABLE block_versions ALTER COLUMN value SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
	NULL;
END $$;

CREATE TRIGGER blocks_keep_place AFTER DELETE ON blocks
	REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION keep_deleted_places();

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
