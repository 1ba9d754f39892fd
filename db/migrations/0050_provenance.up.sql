-- Who stored something: the key, agent, conversation, position and tool. The ids are text without foreign keys: they
-- tell what happened, also when the key or the agent is deleted since. Rows from before have none. Versions of memory
-- files and of working memory have their author, which is of the same shape.
ALTER TABLE passages ADD COLUMN provenance jsonb;
ALTER TABLE passages ADD CONSTRAINT passages_provenance CHECK (octet_length(provenance::text) <= 2000) NOT VALID;
ALTER TABLE files ADD COLUMN provenance jsonb;
ALTER TABLE files ADD CONSTRAINT files_provenance CHECK (octet_length(provenance::text) <= 2000) NOT VALID;
ALTER TABLE block_versions ADD COLUMN provenance jsonb;
ALTER TABLE block_versions
	ADD CONSTRAINT block_versions_provenance CHECK (octet_length(provenance::text) <= 2000) NOT VALID;
ALTER TABLE messages ADD COLUMN provenance jsonb;
ALTER TABLE messages ADD CONSTRAINT messages_provenance CHECK (octet_length(provenance::text) <= 2000) NOT VALID;
ALTER TABLE compactions ADD COLUMN provenance jsonb;
ALTER TABLE compactions
	ADD CONSTRAINT compactions_provenance CHECK (octet_length(provenance::text) <= 2000) NOT VALID;
ALTER TABLE handovers ADD COLUMN provenance jsonb;
ALTER TABLE handovers ADD CONSTRAINT handovers_provenance CHECK (octet_length(provenance::text) <= 2000) NOT VALID;
ALTER TABLE handover_updates ADD COLUMN provenance jsonb;
ALTER TABLE handover_updates
	ADD CONSTRAINT handover_updates_provenance CHECK (octet_length(provenance::text) <= 2000) NOT VALID;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
