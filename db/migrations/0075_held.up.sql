-- Until when a program holds the compactions of a conversation back, because a plan of several steps is under way there.
ALTER TABLE conversations ADD COLUMN held_until timestamptz;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
