CREATE TABLE folders (
	key            bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id             text        NOT NULL DEFAULT 'source-' || gen_random_uuid(),
	org            integer     NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	name           text        NOT NULL,
	description    text,
	instructions   text,
	metadata       jsonb,
	chunk_tokens   integer     NOT NULL DEFAULT 300,
	overlap_tokens integer     NOT NULL DEFAULT 50,
	created_at     timestamptz NOT NULL DEFAULT now(),
	updated_at     timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT folders_id_key UNIQUE (id),
	CONSTRAINT folders_name_key UNIQUE (org, name),
	CONSTRAINT folders_name_length CHECK (length(name) BETWEEN 1 AND 255),
	CONSTRAINT folders_chunk_tokens CHECK (chunk_tokens BETWEEN 16 AND 8000),
	CONSTRAINT folders_overlap_tokens CHECK (overlap_tokens >= 0 AND overlap_tokens < chunk_tokens)
);

-- A file's text belongs to a generation: the live one is generation (0 while there is none), the one being made is wanted_generation.
-- A file that replaces another keeps out of its name until its text is ready.
CREATE TABLE files (
	key               bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id                text        NOT NULL DEFAULT 'file-' || gen_random_uuid(),
	org               integer     NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	folder_key        bigint      NOT NULL REFERENCES folders (key) ON DELETE CASCADE,
	name              text        NOT NULL,
	original_name     text        NOT NULL,
	replaces          bigint      REFERENCES files (key) ON DELETE SET NULL,
	media_type        text        NOT NULL,
	size_bytes        bigint      NOT NULL,
	sha256            bytea       NOT NULL,
	generation        integer     NOT NULL DEFAULT 0,
	wanted_generation integer     NOT NULL DEFAULT 1,
	parse_started_at  timestamptz,
	error             text,
	charset           text,
	chars             bigint      NOT NULL DEFAULT 0,
	lines             integer     NOT NULL DEFAULT 0,
	chunks            integer     NOT NULL DEFAULT 0,
	created_at        timestamptz NOT NULL DEFAULT now(),
	updated_at        timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT files_id_key UNIQUE (id),
	CONSTRAINT files_replaces_key UNIQUE (replaces),
	CONSTRAINT files_name_length CHECK (length(name) BETWEEN 1 AND 255)
);
CREATE UNIQUE INDEX files_name_key ON files (folder_key, name) WHERE replaces IS NULL;
CREATE INDEX files_folder ON files (folder_key, created_at, key);

-- The bytes as they came, in pieces of 1 MiB.
CREATE TABLE file_originals (
	file_key bigint  NOT NULL REFERENCES files (key) ON DELETE CASCADE,
	ordinal  integer NOT NULL,
	org      integer NOT NULL,
	bytes    bytea   NOT NULL,
	PRIMARY KEY (file_key, ordinal)
);

-- The live text, in segments of whole lines; a line longer than a segment continues in the next.
CREATE TABLE file_segments (
	file_key   bigint  NOT NULL REFERENCES files (key) ON DELETE CASCADE,
	generation integer NOT NULL,
	ordinal    integer NOT NULL,
	org        integer NOT NULL,
	first_line integer NOT NULL,
	lines      integer NOT NULL,
	continues  boolean NOT NULL,
	text       text    NOT NULL,
	PRIMARY KEY (file_key, generation, ordinal)
);

-- The live chunks with their word weights: lex is read by inner product, terms holds the same ids for the index.
CREATE TABLE chunks (
	key           bigint               GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id            uuid                 NOT NULL DEFAULT gen_random_uuid(),
	file_key      bigint               NOT NULL REFERENCES files (key) ON DELETE CASCADE,
	generation    integer              NOT NULL,
	ordinal       integer              NOT NULL,
	org           integer              NOT NULL,
	folder_key    bigint               NOT NULL,
	first_line    integer              NOT NULL,
	last_line     integer              NOT NULL,
	start_byte    bigint               NOT NULL,
	overlap_bytes integer              NOT NULL,
	heading       text                 NOT NULL,
	text          text                 NOT NULL,
	lex           sparsevec(16777216)  NOT NULL,
	terms         integer[]            NOT NULL,
	CONSTRAINT chunks_place_key UNIQUE (file_key, generation, ordinal)
);
-- A search reads lex of every row of a scope: it stays in the row, and the text goes out where both do not fit.
ALTER TABLE chunks ALTER COLUMN lex SET STORAGE MAIN;
CREATE INDEX chunks_folder ON chunks (folder_key, key);
CREATE INDEX chunks_terms ON chunks USING gin (terms);

-- Vectors stay inline in a narrow row, so that a scan of a scope reads nothing else.
CREATE TABLE chunk_vectors (
	space_id   smallint NOT NULL REFERENCES embedding_spaces (id) ON DELETE CASCADE,
	chunk_key  bigint   NOT NULL REFERENCES chunks (key) ON DELETE CASCADE,
	org        integer  NOT NULL,
	folder_key bigint   NOT NULL,
	embedding  halfvec  NOT NULL,
	PRIMARY KEY (chunk_key, space_id)
) WITH (toast_tuple_target = 8160);
CREATE INDEX chunk_vectors_folder ON chunk_vectors (folder_key, space_id);

-- Chunks of a file that wait for their vectors, by ranges of ordinals; a range is deleted when its vectors are in.
CREATE TABLE embed_batches (
	file_key      bigint   NOT NULL REFERENCES files (key) ON DELETE CASCADE,
	space_id      smallint NOT NULL REFERENCES embedding_spaces (id) ON DELETE CASCADE,
	generation    integer  NOT NULL,
	first_ordinal integer  NOT NULL,
	end_ordinal   integer  NOT NULL,
	org           integer  NOT NULL,
	error         text,
	PRIMARY KEY (file_key, space_id, generation, first_ordinal)
);

CREATE TABLE agent_folders (
	agent_id    text        NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
	folder_key  bigint      NOT NULL REFERENCES folders (key) ON DELETE CASCADE,
	org         integer     NOT NULL,
	attached_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (agent_id, folder_key)
);
CREATE INDEX agent_folders_folder ON agent_folders (folder_key);

-- What an agent has open, or had: a view of whole lines from first_line (0-based), to the end where line_count is null.
CREATE TABLE agent_files (
	agent_id      text        NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
	file_key      bigint      NOT NULL REFERENCES files (key) ON DELETE CASCADE,
	org           integer     NOT NULL,
	is_open       boolean     NOT NULL,
	pinned        boolean     NOT NULL DEFAULT false,
	first_line    integer     NOT NULL DEFAULT 0,
	line_count    integer,
	last_used_seq bigint      NOT NULL,
	last_used_at  timestamptz NOT NULL,
	PRIMARY KEY (agent_id, file_key)
);
CREATE INDEX agent_files_file ON agent_files (file_key);
CREATE INDEX agent_files_open ON agent_files (agent_id, last_used_seq) WHERE is_open;

-- lz4 reads and writes several times faster than the default; where the server was built without it, the default stays.
DO $$
BEGIN
	ALTER TABLE file_originals ALTER COLUMN bytes SET COMPRESSION lz4;
	ALTER TABLE file_segments ALTER COLUMN text SET COMPRESSION lz4;
	ALTER TABLE chunks ALTER COLUMN text SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
	NULL;
END $$;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
