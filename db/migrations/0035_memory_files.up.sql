-- Trees of memory files: the paths under /memories of an agent, or of several that share the tree. Whoever changes a file locks
-- the tree's row.
CREATE TABLE memory_trees (
	org         integer     NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	key         bigint      GENERATED ALWAYS AS IDENTITY,
	id          text        NOT NULL DEFAULT 'tree-' || gen_random_uuid(),
	name        text        NOT NULL,
	description text,
	rules       jsonb       NOT NULL DEFAULT '{}',
	created_at  timestamptz NOT NULL DEFAULT now(),
	updated_at  timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (org, key),
	CONSTRAINT memory_trees_id_key UNIQUE (org, id),
	CONSTRAINT memory_trees_name CHECK (length(name) BETWEEN 1 AND 255)
);
CREATE INDEX memory_trees_by_creation ON memory_trees (org, created_at, key);

-- An agent works in one tree.
CREATE TABLE agent_memory_trees (
	org         integer     NOT NULL,
	agent_id    text        NOT NULL,
	tree_key    bigint      NOT NULL,
	read_only   boolean     NOT NULL DEFAULT false,
	attached_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (org, agent_id),
	CONSTRAINT agent_memory_trees_agent FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	CONSTRAINT agent_memory_trees_tree FOREIGN KEY (org, tree_key) REFERENCES memory_trees (org, key) ON DELETE CASCADE
);
CREATE INDEX agent_memory_trees_tree ON agent_memory_trees (org, tree_key);

-- The files of trees; a deleted one stays for its versions. folded is the path without its case. lex and terms are those of
-- messages.
CREATE TABLE memory_files (
	org        integer             NOT NULL,
	key        bigint              GENERATED ALWAYS AS IDENTITY,
	id         text                NOT NULL DEFAULT 'memfile-' || gen_random_uuid(),
	tree_key   bigint              NOT NULL,
	path       text                NOT NULL,
	folded     text                NOT NULL,
	content    text                NOT NULL,
	sha256     text                NOT NULL,
	version    integer             NOT NULL DEFAULT 1,
	lex        sparsevec(16777216) NOT NULL,
	terms      bigint[]            NOT NULL,
	created_at timestamptz         NOT NULL DEFAULT now(),
	updated_at timestamptz         NOT NULL DEFAULT now(),
	deleted_at timestamptz,
	PRIMARY KEY (org, key),
	CONSTRAINT memory_files_id_key UNIQUE (org, id),
	CONSTRAINT memory_files_tree FOREIGN KEY (org, tree_key) REFERENCES memory_trees (org, key) ON DELETE CASCADE,
	CONSTRAINT memory_files_size CHECK (octet_length(content) <= 1048576)
);
ALTER TABLE memory_files ALTER COLUMN lex SET STORAGE MAIN;
CREATE UNIQUE INDEX memory_files_path ON memory_files (org, tree_key, folded) WHERE deleted_at IS NULL;
CREATE INDEX memory_files_of_tree ON memory_files (org, tree_key, key);

-- What a file was after each of its changes, and who made it so. A deletion has no content.
CREATE TABLE memory_file_versions (
	org      integer     NOT NULL,
	file_key bigint      NOT NULL,
	version  integer     NOT NULL,
	change   text        NOT NULL,
	path     text        NOT NULL,
	content  text,
	sha256   text,
	redacted boolean     NOT NULL DEFAULT false,
	author   jsonb       NOT NULL,
	at       timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (org, file_key, version),
	CONSTRAINT memory_file_versions_file FOREIGN KEY (org, file_key) REFERENCES memory_files (org, key) ON DELETE CASCADE,
	CONSTRAINT memory_file_versions_change CHECK (change IN ('created', 'modified', 'renamed', 'deleted', 'restored', 'redacted'))
);

DO $$
BEGIN
	ALTER TABLE memory_files ALTER COLUMN content SET COMPRESSION lz4;
	ALTER TABLE memory_file_versions ALTER COLUMN content SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
	NULL;
END $$;

CREATE TRIGGER memory_trees_keep_place AFTER DELETE ON memory_trees
	REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION keep_deleted_places();

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
