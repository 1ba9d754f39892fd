-- Since when an erasure is worked on, and since when searches found nothing: what began before may still write what it read.
ALTER TABLE erasures
	ADD COLUMN began_at    timestamptz,
	ADD COLUMN clean_since timestamptz;
UPDATE erasures SET began_at = now() WHERE status = 'running';

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
