-- A file that an attachment or an upload opened shows within its share of the window, until the agent or its operator opens it.
ALTER TABLE agent_files ADD COLUMN automatic boolean NOT NULL DEFAULT false;

-- Whether files of the folder open by themselves; null is the agent's own setting.
ALTER TABLE agent_folders ADD COLUMN opens boolean;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
