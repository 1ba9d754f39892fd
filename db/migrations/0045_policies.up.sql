-- The policy that shortened how messages are shown before a prompt, how many edits each of its steps made and the
-- tokens that they saved, and the edits themselves; null of a compaction.
ALTER TABLE compactions
	ADD COLUMN policy text,
	ADD COLUMN steps  jsonb,
	ADD COLUMN edits  jsonb;

-- Changes of the agent's compaction settings for one conversation.
ALTER TABLE conversations ADD COLUMN compaction_settings jsonb;

-- The policy of an organization's agents that have none of their own, or a change of the server's.
ALTER TABLE organizations ADD COLUMN policy jsonb;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
