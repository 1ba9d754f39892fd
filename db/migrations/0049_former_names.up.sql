-- The names that a definition had, the newest last. Calls of these names wait in conversations, and the rules of tools hold
-- for their results.
ALTER TABLE tools ADD COLUMN former_names text[] NOT NULL DEFAULT '{}';
