-- A run of the parent's conversation waits for a sub-agent: its result is that of the call that started it.
ALTER TABLE children ADD COLUMN awaited boolean NOT NULL DEFAULT false;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
