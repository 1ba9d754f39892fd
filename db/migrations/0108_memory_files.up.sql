-- Trees of memory files.

-- Trees of memory files: the paths under /memories of an agent, or of several that share the tree. Whoever changes
-- a file locks the tree's row.
CREATE TABLE memory_trees (
	org            integer     NOT NULL,
	key            bigserial   NOT NULL,
	id             text        NOT NULL DEFAULT ('tree-' || gen_random_uuid()),
	name           text        NOT NULL,
	description    text,
	rules          jsonb       NOT NULL DEFAULT '{}',
	created_at     timestamptz NOT NULL DEFAULT now(),
	updated_at     timestamptz NOT NULL DEFAULT now(),
	-- The space that the files of a tree have their vectors in, or wait for; none before there was an embeddings
	-- endpoint. embed_error says why they wait.
	embedded_space smallint,
	embed_error    text,
	PRIMARY KEY (org, key),
	CONSTRAINT memory_trees_id_key UNIQUE (org, id),
	CONSTRAINT memory_trees_name CHECK (length(name) BETWEEN 1 AND 255),
	CONSTRAINT memory_trees_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
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
	CONSTRAINT agent_memory_trees_tree FOREIGN KEY (org, tree_key)
		REFERENCES memory_trees (org, key) ON DELETE CASCADE
);
CREATE INDEX agent_memory_trees_tree ON agent_memory_trees (org, tree_key);

-- The files of trees; a deleted one stays for its versions. folded is the path without its case. lex and terms are
-- those of messages.
CREATE TABLE memory_files (
	org            integer              NOT NULL,
	key            bigserial            NOT NULL,
	id             text                 NOT NULL DEFAULT ('memfile-' || gen_random_uuid()),
	tree_key       bigint               NOT NULL,
	path           text                 NOT NULL,
	folded         text                 NOT NULL,
	content        text COMPRESSION lz4 NOT NULL,
	sha256         text                 NOT NULL,
	version        integer              NOT NULL DEFAULT 1,
	lex            sparsevec(16777216)  NOT NULL,
	terms          bigint[]             NOT NULL,
	created_at     timestamptz          NOT NULL DEFAULT now(),
	updated_at     timestamptz          NOT NULL DEFAULT now(),
	deleted_at     timestamptz,
	-- When memory files hold, as passages; superseded_by is a file of the same tree.
	valid_from     timestamptz,
	valid_until    timestamptz,
	superseded_by  bigint,
	-- A file waits until each chunk of its text has a vector. refused_chunks are those that the endpoint refused.
	unembedded     boolean              NOT NULL DEFAULT true,
	refused_chunks bigint[]             NOT NULL DEFAULT '{}',
	lex_version    smallint             NOT NULL DEFAULT 3,
	PRIMARY KEY (org, key),
	CONSTRAINT memory_files_id_key UNIQUE (org, id),
	CONSTRAINT memory_files_tree_key UNIQUE (org, tree_key, key),
	CONSTRAINT memory_files_size CHECK (octet_length(content) <= 1048576),
	CONSTRAINT memory_files_superseded_by_another CHECK (superseded_by <> key),
	CONSTRAINT memory_files_superseded_ended CHECK (superseded_by IS NULL OR valid_until IS NOT NULL),
	CONSTRAINT memory_files_validity CHECK (valid_until > valid_from),
	CONSTRAINT memory_files_superseded_by FOREIGN KEY (org, tree_key, superseded_by)
		REFERENCES memory_files (org, tree_key, key) DEFERRABLE INITIALLY DEFERRED,
	CONSTRAINT memory_files_tree FOREIGN KEY (org, tree_key) REFERENCES memory_trees (org, key) ON DELETE CASCADE
);
ALTER TABLE memory_files ALTER COLUMN lex SET STORAGE MAIN;
CREATE INDEX memory_files_outdated_words ON memory_files (org, key) WHERE lex_version < 3;
CREATE UNIQUE INDEX memory_files_path ON memory_files (org, tree_key, folded) WHERE deleted_at IS NULL;
CREATE INDEX memory_files_superseded ON memory_files (org, tree_key, superseded_by)
	WHERE superseded_by IS NOT NULL;
CREATE INDEX memory_files_unembedded ON memory_files (org, tree_key) WHERE unembedded AND (deleted_at IS NULL);

-- What a file was after each of its changes, and who made it so. A deletion has no content.
CREATE TABLE memory_file_versions (
	org         integer              NOT NULL,
	file_key    bigint               NOT NULL,
	version     integer              NOT NULL,
	change      text                 NOT NULL,
	path        text                 NOT NULL,
	content     text COMPRESSION lz4,
	sha256      text,
	redacted    boolean              NOT NULL DEFAULT false,
	author      jsonb                NOT NULL,
	at          timestamptz          NOT NULL DEFAULT clock_timestamp(),
	valid_from  timestamptz,
	valid_until timestamptz,
	PRIMARY KEY (org, file_key, version),
	CONSTRAINT memory_file_versions_change CHECK (change IN ('created', 'modified', 'renamed',
		'deleted', 'restored', 'redacted', 'validity')),
	CONSTRAINT memory_file_versions_file FOREIGN KEY (org, file_key)
		REFERENCES memory_files (org, key) ON DELETE CASCADE
);

-- Vectors of the present texts of files that are not deleted. A chunk is named by the first 8 bytes of the SHA-256
-- of what is embedded of it: its path, heading and text.
CREATE TABLE memory_file_vectors (
	org        integer  NOT NULL,
	tree_key   bigint   NOT NULL,
	file_key   bigint   NOT NULL,
	space_id   smallint NOT NULL,
	chunk      bigint   NOT NULL,
	first_line integer  NOT NULL,
	last_line  integer  NOT NULL,
	embedding  halfvec  NOT NULL,
	PRIMARY KEY (org, tree_key, file_key, space_id, chunk),
	CONSTRAINT memory_file_vectors_file FOREIGN KEY (org, tree_key, file_key)
		REFERENCES memory_files (org, tree_key, key) ON DELETE CASCADE,
	CONSTRAINT memory_file_vectors_space FOREIGN KEY (space_id) REFERENCES embedding_spaces (id) ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
CREATE INDEX memory_file_vectors_of_space ON memory_file_vectors (org, space_id);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
