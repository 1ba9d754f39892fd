-- What a file's document holds and its text does not: a list of {kind, count, where}. NULL while that is not known: the
-- file has no text yet, or an earlier version of the program read it.
ALTER TABLE files ADD COLUMN omitted jsonb;
ALTER TABLE files ADD CONSTRAINT files_omitted
	CHECK (jsonb_typeof(omitted) = 'array' AND octet_length(omitted::text) <= 200000);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
