-- Citus refuses a key with org that changes the rows that refer to it. The statements that delete a row, or give a block
-- another label, change those rows themselves; the keys are checked as the transaction ends, so that they may do it in
-- any order.
ALTER TABLE files
	DROP CONSTRAINT files_replaces_fkey,
	ADD CONSTRAINT files_replaces FOREIGN KEY (org, replaces) REFERENCES files (org, key)
		DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE conversations
	DROP CONSTRAINT conversations_forked_from,
	ADD CONSTRAINT conversations_forked_from FOREIGN KEY (org, agent_key, forked_from)
		REFERENCES conversations (org, agent_key, key) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE passages
	DROP CONSTRAINT passages_superseded_by,
	ADD CONSTRAINT passages_superseded_by FOREIGN KEY (org, archive_key, superseded_by)
		REFERENCES passages (org, archive_key, key) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE agent_blocks
	DROP CONSTRAINT agent_blocks_block,
	ADD CONSTRAINT agent_blocks_block FOREIGN KEY (org, block_key, label)
		REFERENCES blocks (org, key, label) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE memory_files
	DROP CONSTRAINT memory_files_superseded_by,
	ADD CONSTRAINT memory_files_superseded_by FOREIGN KEY (org, tree_key, superseded_by)
		REFERENCES memory_files (org, tree_key, key) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE handovers
	DROP CONSTRAINT handovers_taken,
	ADD CONSTRAINT handovers_taken FOREIGN KEY (org, agent_key, taken_by)
		REFERENCES conversations (org, agent_key, key) DEFERRABLE INITIALLY DEFERRED;
ALTER TABLE children
	DROP CONSTRAINT children_own_conversation,
	ADD CONSTRAINT children_own_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) DEFERRABLE INITIALLY DEFERRED;

-- The statements that delete a row note its place in lists.
DROP TRIGGER files_keep_place ON files;
DROP TRIGGER agents_keep_place ON agents;
DROP TRIGGER conversations_keep_place ON conversations;
DROP TRIGGER archives_keep_place ON archives;
DROP TRIGGER blocks_keep_place ON blocks;
DROP TRIGGER tools_keep_place ON tools;
DROP TRIGGER identities_keep_place ON identities;
DROP TRIGGER memory_trees_keep_place ON memory_trees;
DROP FUNCTION keep_deleted_places();

-- The statements that hide conversations cancel the sub-agents, and those that change a view end its silent turns.
DROP TRIGGER conversations_cancel_children ON conversations;
DROP FUNCTION cancel_children_of_hidden();
DROP FUNCTION cancel_children(integer, bigint[], text);
DROP TRIGGER conversations_end_flushes ON conversations;
DROP FUNCTION end_flushes_of_view();

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
