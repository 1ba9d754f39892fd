-- A folder of skills: the files SKILL.md in it are skills of the agents that it is attached to.
ALTER TABLE folders ADD COLUMN skills boolean NOT NULL DEFAULT false;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
