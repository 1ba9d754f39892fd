-- Conversations that were hidden because their agent's messages were reset, not because they were deleted.
ALTER TABLE conversations ADD COLUMN reset_at timestamptz;

UPDATE schema_migrations SET dirty = false;
