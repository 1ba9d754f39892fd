-- Folders, their files, and what is made of them.

CREATE TABLE folders (
	org            integer     NOT NULL,
	key            bigserial   NOT NULL,
	id             text        NOT NULL DEFAULT ('source-' || gen_random_uuid()),
	name           text        NOT NULL,
	description    text,
	instructions   text,
	metadata       jsonb,
	chunk_tokens   integer     NOT NULL DEFAULT 300,
	overlap_tokens integer     NOT NULL DEFAULT 50,
	created_at     timestamptz NOT NULL DEFAULT now(),
	updated_at     timestamptz NOT NULL DEFAULT now(),
	deleted_at     timestamptz,
	-- Who made folders, archives, identities and the definitions of tools, who last changed them, and who attached
	-- a block to an agent: a provenance. The versions of a block say
	-- who made and changed it.
	made_by        jsonb,
	changed_by     jsonb,
	PRIMARY KEY (org, key),
	CONSTRAINT folders_id_key UNIQUE (org, id),
	CONSTRAINT folders_makers CHECK ((octet_length(made_by::text) <= 2000) AND
		(octet_length(changed_by::text) <= 2000)),
	CONSTRAINT folders_chunk_tokens CHECK (chunk_tokens BETWEEN 16 AND 8000),
	CONSTRAINT folders_name_length CHECK (length(name) BETWEEN 1 AND 255),
	CONSTRAINT folders_overlap_tokens CHECK (overlap_tokens >= 0 AND overlap_tokens < chunk_tokens),
	CONSTRAINT folders_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
CREATE UNIQUE INDEX folders_name_key ON folders (org, name) WHERE deleted_at IS NULL;
CREATE INDEX folders_org ON folders (org, created_at, key) WHERE deleted_at IS NULL;

-- A file's text belongs to a generation: the live one is generation (0 while there is none), the one being made is
-- wanted_generation. A file that replaces another keeps out of its name until its text is ready.
CREATE TABLE files (
	org               integer     NOT NULL,
	key               bigserial   NOT NULL,
	id                text        NOT NULL DEFAULT ('file-' || gen_random_uuid()),
	folder_key        bigint      NOT NULL,
	name              text        NOT NULL,
	original_name     text        NOT NULL,
	replaces          bigint,
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
	-- Where the pages of a file begin: the first line of each, from 1. NULL where its format has no pages.
	pages             integer[],
	-- A file that waits to be parsed has its turn: where in the virtual time of its queue the folder's next one
	-- begins. Large files wait in a queue of their own.
	turn              timestamptz,
	cancelled         boolean     NOT NULL DEFAULT false,
	-- What of a file is in the index of n-grams: its text of this generation.
	gram_generation   integer     NOT NULL DEFAULT 0,
	provenance        jsonb,
	-- The least and the greatest key of a file's chunks; null while it has none. A search of some files passes over
	-- the other rows of the index of words by them.
	first_chunk       bigint,
	last_chunk        bigint,
	PRIMARY KEY (org, key),
	CONSTRAINT files_folder_key UNIQUE (org, folder_key, key),
	CONSTRAINT files_id_key UNIQUE (org, id),
	CONSTRAINT files_provenance CHECK (octet_length(provenance::text) <= 2000),
	CONSTRAINT files_replaces_key UNIQUE (org, replaces),
	CONSTRAINT files_name_length CHECK (length(name) BETWEEN 1 AND 255),
	CONSTRAINT files_pages CHECK (cardinality(pages) > 0),
	CONSTRAINT files_folder_key_fkey FOREIGN KEY (org, folder_key) REFERENCES folders (org, key) ON DELETE CASCADE,
	CONSTRAINT files_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE,
	-- Citus refuses a key with org that changes the rows that refer to it. The statements that delete a row, or
	-- give a block another label, change those rows themselves; the keys are checked as the transaction ends, so
	-- that they may do it in any order.
	CONSTRAINT files_replaces FOREIGN KEY (org, replaces) REFERENCES files (org, key) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX files_folder ON files (org, folder_key, created_at, key);
-- A listing by name reads a page of it.
CREATE INDEX files_listing ON files (org, folder_key, name COLLATE "C", key) WHERE replaces IS NULL;
CREATE UNIQUE INDEX files_name_key ON files (org, folder_key, name) WHERE replaces IS NULL;
-- What a folder holds is counted and summed up without its rows.
CREATE INDEX files_sizes ON files (org, folder_key, size_bytes) WHERE replaces IS NULL;
CREATE INDEX files_turn ON files (org, folder_key, ((size_bytes > 1048576)), turn) WHERE turn IS NOT NULL;
CREATE INDEX files_without_grams ON files (org, folder_key)
	WHERE (generation > 0) AND (gram_generation <> generation);

-- The bytes as they came, in pieces of 1 MiB.
CREATE TABLE file_originals (
	org      integer               NOT NULL,
	file_key bigint                NOT NULL,
	ordinal  integer               NOT NULL,
	bytes    bytea COMPRESSION lz4 NOT NULL,
	PRIMARY KEY (org, file_key, ordinal),
	CONSTRAINT file_originals_file_key_fkey FOREIGN KEY (org, file_key)
		REFERENCES files (org, key) ON DELETE CASCADE
);

-- The live text, in segments of whole lines; a line longer than a segment continues in the next.
CREATE TABLE file_segments (
	org        integer              NOT NULL,
	file_key   bigint               NOT NULL,
	generation integer              NOT NULL,
	ordinal    integer              NOT NULL,
	first_line integer              NOT NULL,
	lines      integer              NOT NULL,
	continues  boolean              NOT NULL,
	text       text COMPRESSION lz4 NOT NULL,
	PRIMARY KEY (org, file_key, generation, ordinal),
	CONSTRAINT file_segments_file_key_fkey FOREIGN KEY (org, file_key) REFERENCES files (org, key) ON DELETE CASCADE
);

-- The live chunks with their word weights: lex is read by inner product, terms holds the same ids for the index.
CREATE TABLE chunks (
	org           integer              NOT NULL,
	key           bigserial            NOT NULL,
	id            uuid                 NOT NULL DEFAULT gen_random_uuid(),
	file_key      bigint               NOT NULL,
	generation    integer              NOT NULL,
	ordinal       integer              NOT NULL,
	folder_key    bigint               NOT NULL,
	first_line    integer              NOT NULL,
	last_line     integer              NOT NULL,
	start_byte    bigint               NOT NULL,
	overlap_bytes integer              NOT NULL,
	heading       text                 NOT NULL,
	text          text COMPRESSION lz4 NOT NULL,
	lex           sparsevec(16777216)  NOT NULL,
	terms         integer[]            NOT NULL,
	first_page    integer,
	last_page     integer,
	-- The version of the terms and weights that a row's lex and terms hold: embed.LexVersion when they were made.
	-- What is older than the default is made again in the background, and found through the index of its table. The
	-- pieces of a message are of its version.
	lex_version   smallint             NOT NULL DEFAULT 3,
	PRIMARY KEY (org, key),
	CONSTRAINT chunks_folder_key UNIQUE (org, folder_key, key),
	CONSTRAINT chunks_place_key UNIQUE (org, file_key, generation, ordinal),
	CONSTRAINT chunks_pages CHECK (first_page >= 1 AND last_page >= first_page),
	CONSTRAINT chunks_file FOREIGN KEY (org, folder_key, file_key)
		REFERENCES files (org, folder_key, key) ON DELETE CASCADE
);
ALTER TABLE chunks ALTER COLUMN lex SET STORAGE MAIN;
-- A page of passages goes on from one of them.
CREATE INDEX chunks_id ON chunks (org, id);
CREATE INDEX chunks_outdated_words ON chunks (org, key) WHERE lex_version < 3;
CREATE INDEX chunks_terms ON chunks USING gin (terms);

-- Vectors stay inline in a narrow row, so that a scan of a scope reads nothing else.
CREATE TABLE chunk_vectors (
	org        integer  NOT NULL,
	space_id   smallint NOT NULL,
	chunk_key  bigint   NOT NULL,
	folder_key bigint   NOT NULL,
	embedding  halfvec  NOT NULL,
	PRIMARY KEY (org, chunk_key, space_id),
	CONSTRAINT chunk_vectors_chunk FOREIGN KEY (org, folder_key, chunk_key)
		REFERENCES chunks (org, folder_key, key) ON DELETE CASCADE,
	CONSTRAINT chunk_vectors_space_id_fkey FOREIGN KEY (space_id) REFERENCES embedding_spaces (id) ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
-- What a space holds is counted, and cleared away, by the space.
CREATE INDEX chunk_vectors_scope ON chunk_vectors (org, space_id, folder_key);

-- Chunks of a file that wait for their vectors, by ranges of ordinals; a range is deleted when its vectors are in.
CREATE TABLE embed_batches (
	org           integer     NOT NULL,
	file_key      bigint      NOT NULL,
	space_id      smallint    NOT NULL,
	generation    integer     NOT NULL,
	first_ordinal integer     NOT NULL,
	end_ordinal   integer     NOT NULL,
	error         text,
	-- A batch whose job is queued has its turn too; the others of its file follow as these are done.
	folder_key    bigint      NOT NULL,
	turn          timestamptz,
	PRIMARY KEY (org, file_key, space_id, generation, first_ordinal),
	CONSTRAINT embed_batches_file FOREIGN KEY (org, folder_key, file_key)
		REFERENCES files (org, folder_key, key) ON DELETE CASCADE,
	CONSTRAINT embed_batches_space_id_fkey FOREIGN KEY (space_id) REFERENCES embedding_spaces (id) ON DELETE CASCADE
);
CREATE INDEX embed_batches_space ON embed_batches (org, space_id);
CREATE INDEX embed_batches_turn ON embed_batches (org, folder_key, space_id, turn) WHERE turn IS NOT NULL;

-- Chunks that the endpoint of a space will not embed: they are found by their words.
CREATE TABLE embed_refusals (
	org      integer  NOT NULL,
	file_key bigint   NOT NULL,
	space_id smallint NOT NULL,
	chunks   integer  NOT NULL,
	reason   text     NOT NULL,
	PRIMARY KEY (org, file_key, space_id),
	CONSTRAINT embed_refusals_file_key_fkey FOREIGN KEY (org, file_key)
		REFERENCES files (org, key) ON DELETE CASCADE,
	CONSTRAINT embed_refusals_space_id_fkey FOREIGN KEY (space_id)
		REFERENCES embedding_spaces (id) ON DELETE CASCADE
);

-- The index of n-grams goes by blocks of units, stretches of text that are searched or passed over as one. bits has
-- a row of (units + 7) / 8 bytes for each bucket of n-grams: which units have one of them.
CREATE TABLE gram_blocks (
	org        integer   NOT NULL,
	key        bigserial NOT NULL,
	folder_key bigint    NOT NULL,
	units      integer   NOT NULL,
	bits       bytea     NOT NULL,
	-- A block of the index of n-grams keeps the number of its parts: those of a deleted file are deleted with it.
	parts      integer   NOT NULL,
	PRIMARY KEY (org, key),
	CONSTRAINT gram_blocks_units CHECK (units > 0),
	CONSTRAINT gram_blocks_folder_key_fkey FOREIGN KEY (org, folder_key)
		REFERENCES folders (org, key) ON DELETE CASCADE,
	CONSTRAINT gram_blocks_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
ALTER TABLE gram_blocks ALTER COLUMN bits SET STORAGE EXTERNAL;
CREATE INDEX gram_blocks_folder ON gram_blocks (org, folder_key);

-- The segments of a unit, from first_ordinal up to end_ordinal. The file may be gone, or have another text by now:
-- the rows go with their block, not with the file.
CREATE TABLE gram_units (
	org           integer NOT NULL,
	block_key     bigint  NOT NULL,
	unit          integer NOT NULL,
	file_key      bigint  NOT NULL,
	generation    integer NOT NULL,
	first_ordinal integer NOT NULL,
	end_ordinal   integer NOT NULL,
	PRIMARY KEY (org, block_key, unit, file_key),
	CONSTRAINT gram_units_block_key_fkey FOREIGN KEY (org, block_key)
		REFERENCES gram_blocks (org, key) ON DELETE CASCADE,
	CONSTRAINT gram_units_file FOREIGN KEY (org, file_key) REFERENCES files (org, key) ON DELETE CASCADE
);
CREATE INDEX gram_units_file ON gram_units (org, file_key);

CREATE TABLE agent_folders (
	org         integer     NOT NULL,
	agent_id    text        NOT NULL,
	folder_key  bigint      NOT NULL,
	attached_at timestamptz NOT NULL DEFAULT now(),
	-- Whether files of the folder open by themselves; null is the agent's own setting.
	opens       boolean,
	PRIMARY KEY (org, agent_id, folder_key),
	CONSTRAINT agent_folders_agent_id_fkey FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	CONSTRAINT agent_folders_folder_key_fkey FOREIGN KEY (org, folder_key)
		REFERENCES folders (org, key) ON DELETE CASCADE
);
CREATE INDEX agent_folders_folder ON agent_folders (org, folder_key);

-- What an agent has open, or had: a view of whole lines from first_line (0-based), to the end where line_count is
-- null.
CREATE TABLE agent_files (
	org           integer     NOT NULL,
	agent_id      text        NOT NULL,
	file_key      bigint      NOT NULL,
	is_open       boolean     NOT NULL,
	pinned        boolean     NOT NULL DEFAULT false,
	first_line    integer     NOT NULL DEFAULT 0,
	line_count    integer,
	last_used_seq bigint      NOT NULL,
	last_used_at  timestamptz NOT NULL,
	-- A file that an attachment or an upload opened shows within its share of the window, until the agent or its
	-- operator opens it.
	automatic     boolean     NOT NULL DEFAULT false,
	PRIMARY KEY (org, agent_id, file_key),
	CONSTRAINT agent_files_agent_id_fkey FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	CONSTRAINT agent_files_file_key_fkey FOREIGN KEY (org, file_key) REFERENCES files (org, key) ON DELETE CASCADE
);
CREATE INDEX agent_files_file ON agent_files (org, file_key);
CREATE INDEX agent_files_open ON agent_files (org, agent_id, last_used_seq) WHERE is_open;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
