-- What of a file is in the index of n-grams: its text of this generation.
ALTER TABLE files ADD COLUMN gram_generation integer NOT NULL DEFAULT 0;
CREATE INDEX files_without_grams ON files (folder_key) WHERE generation > 0 AND gram_generation <> generation;

-- The index of n-grams goes by blocks of units, stretches of text that are searched or passed over as one. bits has a row of
-- (units + 7) / 8 bytes for each bucket of n-grams: which units have one of them.
CREATE TABLE gram_blocks (
	key        bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	org        integer NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	folder_key bigint  NOT NULL REFERENCES folders (key) ON DELETE CASCADE,
	units      integer NOT NULL,
	bits       bytea   NOT NULL,
	CONSTRAINT gram_blocks_units CHECK (units > 0)
);
CREATE INDEX gram_blocks_folder ON gram_blocks (folder_key);
-- A search reads a few rows of bits and nothing around them, which only what is not compressed allows.
ALTER TABLE gram_blocks ALTER COLUMN bits SET STORAGE EXTERNAL;

-- The segments of a unit, from first_ordinal up to end_ordinal. The file may be gone, or have another text by now: the rows go with
-- their block, not with the file.
CREATE TABLE gram_units (
	block_key     bigint  NOT NULL REFERENCES gram_blocks (key) ON DELETE CASCADE,
	unit          integer NOT NULL,
	file_key      bigint  NOT NULL,
	generation    integer NOT NULL,
	first_ordinal integer NOT NULL,
	end_ordinal   integer NOT NULL,
	PRIMARY KEY (block_key, unit, file_key)
);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
