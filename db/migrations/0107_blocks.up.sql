-- Blocks of core memory.

-- Core memory blocks. version counts the changes of a block, from 1; its row is their lock.
CREATE TABLE blocks (
	org         integer     NOT NULL,
	key         bigserial   NOT NULL,
	id          text        NOT NULL DEFAULT ('block-' || gen_random_uuid()),
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
	PRIMARY KEY (org, key),
	CONSTRAINT blocks_id_key UNIQUE (org, id),
	CONSTRAINT blocks_label_key UNIQUE (org, key, label),
	CONSTRAINT blocks_label CHECK (label ~ '^[a-zA-Z0-9_/-]{1,50}$'),
	CONSTRAINT blocks_limit CHECK (limit_chars BETWEEN 1 AND 10000000),
	CONSTRAINT blocks_value_length CHECK (length(value) <= limit_chars),
	CONSTRAINT blocks_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
CREATE INDEX blocks_org ON blocks (org, created_at, key);
CREATE INDEX blocks_tags ON blocks USING gin (tags);

-- What a block was at each of its versions, and who made it so.
CREATE TABLE block_versions (
	org         integer              NOT NULL,
	block_key   bigint               NOT NULL,
	version     integer              NOT NULL,
	author      text                 NOT NULL,
	label       text                 NOT NULL,
	description text,
	value       text COMPRESSION lz4 NOT NULL,
	limit_chars integer              NOT NULL,
	read_only   boolean              NOT NULL,
	at          timestamptz          NOT NULL DEFAULT clock_timestamp(),
	provenance  jsonb,
	PRIMARY KEY (org, block_key, version),
	CONSTRAINT block_versions_provenance CHECK (octet_length(provenance::text) <= 2000),
	CONSTRAINT block_versions_block_key_fkey FOREIGN KEY (org, block_key)
		REFERENCES blocks (org, key) ON DELETE CASCADE
);

-- The blocks of agents, each label once in an agent, whatever the block is renamed to.
CREATE TABLE agent_blocks (
	org         integer     NOT NULL,
	agent_id    text        NOT NULL,
	block_key   bigint      NOT NULL,
	label       text        NOT NULL,
	attached_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	-- Whether an agent can only read a block, though others may change it.
	read_only   boolean     NOT NULL DEFAULT false,
	attached_by jsonb,
	PRIMARY KEY (org, agent_id, block_key),
	CONSTRAINT agent_blocks_attached_by CHECK (octet_length(attached_by::text) <= 2000),
	CONSTRAINT agent_blocks_label_key UNIQUE (org, agent_id, label),
	CONSTRAINT agent_blocks_agent_id_fkey FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	CONSTRAINT agent_blocks_block FOREIGN KEY (org, block_key, label)
		REFERENCES blocks (org, key, label) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX agent_blocks_block ON agent_blocks (org, block_key, label);

CREATE TABLE block_identities (
	org          integer NOT NULL,
	block_key    bigint  NOT NULL,
	identity_key bigint  NOT NULL,
	PRIMARY KEY (org, block_key, identity_key),
	CONSTRAINT block_identities_block FOREIGN KEY (org, block_key) REFERENCES blocks (org, key) ON DELETE CASCADE,
	CONSTRAINT block_identities_identity FOREIGN KEY (org, identity_key)
		REFERENCES identities (org, key) ON DELETE CASCADE
);
CREATE INDEX block_identities_identity ON block_identities (org, identity_key);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
