-- The calls of tools that waited for their results when a prompt was handed out.
ALTER TABLE prompts ADD COLUMN pending jsonb NOT NULL DEFAULT '[]';

UPDATE schema_migrations SET dirty = false;
