-- The index of passages that say the same has the hash alone, which the key of the archive seeds. With the organization
-- first, and no statistics yet, Postgres read it for other conditions, too: whole, for each passage of a batch.
DROP INDEX passages_same;
CREATE INDEX passages_same ON passages (hashtextextended(same_text(text), archive_key));

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
