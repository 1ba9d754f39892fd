-- What a caller keeps with a file, such as the address that it is from.
ALTER TABLE files ADD COLUMN metadata jsonb;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
