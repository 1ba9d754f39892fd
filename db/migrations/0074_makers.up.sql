-- Who made folders, archives, identities and the definitions of tools, who last changed them, and who attached a block
-- to an agent, of the shape that 0050 describes. Rows from before have none. The versions of a block say who made and
-- changed it.
ALTER TABLE folders ADD COLUMN made_by jsonb, ADD COLUMN changed_by jsonb;
ALTER TABLE folders ADD CONSTRAINT folders_makers
	CHECK (octet_length(made_by::text) <= 2000 AND octet_length(changed_by::text) <= 2000) NOT VALID;
ALTER TABLE archives ADD COLUMN made_by jsonb, ADD COLUMN changed_by jsonb;
ALTER TABLE archives ADD CONSTRAINT archives_makers
	CHECK (octet_length(made_by::text) <= 2000 AND octet_length(changed_by::text) <= 2000) NOT VALID;
ALTER TABLE identities ADD COLUMN made_by jsonb, ADD COLUMN changed_by jsonb;
ALTER TABLE identities ADD CONSTRAINT identities_makers
	CHECK (octet_length(made_by::text) <= 2000 AND octet_length(changed_by::text) <= 2000) NOT VALID;
ALTER TABLE tools ADD COLUMN made_by jsonb, ADD COLUMN changed_by jsonb;
ALTER TABLE tools ADD CONSTRAINT tools_makers
	CHECK (octet_length(made_by::text) <= 2000 AND octet_length(changed_by::text) <= 2000) NOT VALID;
ALTER TABLE agent_blocks ADD COLUMN attached_by jsonb;
ALTER TABLE agent_blocks ADD CONSTRAINT agent_blocks_attached_by CHECK (octet_length(attached_by::text) <= 2000) NOT VALID;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
