-- How an erasure ends, once everything is erased: it has forgotten its texts, and writes tables anew.
ALTER TABLE erasures
	ADD COLUMN ends_as text,
	ADD CONSTRAINT erasures_ends_as CHECK (ends_as IN ('completed', 'incomplete'));

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
