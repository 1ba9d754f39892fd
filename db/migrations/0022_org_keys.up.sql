-- The organization is the first column of each key of a tenant's table, and of each reference between two of them: a row
-- cannot refer to another organization's row, and the tables can be spread over machines by it.

-- A row that names a row of another organization fits no key below, and stops the migration before it changes anything.
DO $$
DECLARE
	r   record;
	bad bigint;
BEGIN
	FOR r IN
		SELECT conrelid::regclass AS child, c.attname AS column, confrelid::regclass AS parent, p.attname AS key
		FROM pg_constraint
		JOIN pg_attribute c ON c.attrelid = conrelid AND c.attnum = conkey[1]
		JOIN pg_attribute p ON p.attrelid = confrelid AND p.attnum = confkey[1]
		WHERE contype = 'f' AND connamespace = 'public'::regnamespace AND c.attname <> 'org'
		  AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = conrelid AND attname = 'org')
		  AND EXISTS (SELECT FROM pg_attribute WHERE attrelid = confrelid AND attname = 'org')
		UNION ALL
		VALUES ('messages'::regclass, 'conversation_key'::name, 'conversations'::regclass, 'key'::name)
	LOOP
		EXECUTE format('SELECT count(*) FROM %s c JOIN %s p ON p.%I = c.%I WHERE c.org <> p.org',
			r.child, r.parent, r.key, r.column) INTO bad;
		IF bad > 0 THEN
			RAISE EXCEPTION '% rows of table % have another organization than the row of table % that their column % names: '
				'set their column org to that of this row, or delete them', bad, r.child, r.parent, r.column;
		END IF;
	END LOOP;
END $$;

-- A deleted folder keeps its organization while its rows are being cleared away.
ALTER TABLE folders DROP CONSTRAINT folders_name_key; -- the name of a deleted one is free
ALTER TABLE folders ADD COLUMN deleted_at timestamptz;
UPDATE folders f SET deleted_at = updated_at, org = (SELECT org FROM files c WHERE c.folder_key = f.key LIMIT 1)
WHERE org IS NULL;
DELETE FROM folders WHERE org IS NULL; -- no file of them is left
ALTER TABLE folders ALTER COLUMN org SET NOT NULL;

-- Tables that lacked the column.
ALTER TABLE tool_calls ADD COLUMN org integer;
UPDATE tool_calls t SET org = c.org FROM conversations c WHERE c.key = t.conversation_key;
ALTER TABLE tool_calls ALTER COLUMN org SET NOT NULL;
ALTER TABLE gram_units ADD COLUMN org integer;
UPDATE gram_units u SET org = b.org FROM gram_blocks b WHERE b.key = u.block_key;
ALTER TABLE gram_units ALTER COLUMN org SET NOT NULL;
ALTER TABLE forgotten_agents ADD COLUMN org integer;
UPDATE forgotten_agents f SET org = (SELECT org FROM messages m WHERE m.agent_key = f.agent_key LIMIT 1);
DELETE FROM forgotten_agents WHERE org IS NULL; -- nothing of them is left
ALTER TABLE forgotten_agents ALTER COLUMN org SET NOT NULL;

-- References are made again below, on the new keys.
ALTER TABLE agent_heads
	DROP CONSTRAINT agent_heads_agent_id_fkey;
ALTER TABLE events
	DROP CONSTRAINT events_agent_id_fkey;
ALTER TABLE files
	DROP CONSTRAINT files_folder_key_fkey,
	DROP CONSTRAINT files_replaces_fkey;
ALTER TABLE file_originals
	DROP CONSTRAINT file_originals_file_key_fkey;
ALTER TABLE file_segments
	DROP CONSTRAINT file_segments_file_key_fkey;
ALTER TABLE chunks
	DROP CONSTRAINT chunks_file_key_fkey;
ALTER TABLE chunk_vectors
	DROP CONSTRAINT chunk_vectors_chunk_key_fkey;
ALTER TABLE embed_batches
	DROP CONSTRAINT embed_batches_file_key_fkey;
ALTER TABLE agent_folders
	DROP CONSTRAINT agent_folders_agent_id_fkey,
	DROP CONSTRAINT agent_folders_folder_key_fkey;
ALTER TABLE agent_files
	DROP CONSTRAINT agent_files_agent_id_fkey,
	DROP CONSTRAINT agent_files_file_key_fkey;
ALTER TABLE embed_refusals
	DROP CONSTRAINT embed_refusals_file_key_fkey;
ALTER TABLE gram_blocks
	DROP CONSTRAINT gram_blocks_folder_key_fkey;
ALTER TABLE gram_units
	DROP CONSTRAINT gram_units_block_key_fkey;
ALTER TABLE event_consumers
	DROP CONSTRAINT event_consumers_agent_id_fkey;
ALTER TABLE conversations
	DROP CONSTRAINT conversations_agent_key_fkey;
ALTER TABLE tool_calls
	DROP CONSTRAINT tool_calls_conversation_key_fkey;
ALTER TABLE clips
	DROP CONSTRAINT clips_agent_key_fkey,
	DROP CONSTRAINT clips_conversation_key_fkey;
ALTER TABLE message_vectors
	DROP CONSTRAINT message_vectors_message_key_fkey;
ALTER TABLE agent_archives
	DROP CONSTRAINT agent_archives_agent_id_fkey,
	DROP CONSTRAINT agent_archives_archive_key_fkey;
ALTER TABLE passages
	DROP CONSTRAINT passages_archive_key_fkey;
ALTER TABLE block_versions
	DROP CONSTRAINT block_versions_block_key_fkey;
ALTER TABLE agent_blocks
	DROP CONSTRAINT agent_blocks_agent_id_fkey,
	DROP CONSTRAINT agent_blocks_block;
ALTER TABLE unembedded_passages
	DROP CONSTRAINT unembedded_passages_passage_key_fkey;
ALTER TABLE passage_vectors
	DROP CONSTRAINT passage_vectors_passage_key_fkey;
ALTER TABLE prompt_parts
	DROP CONSTRAINT prompt_parts_agent_key_fkey;
ALTER TABLE prompts
	DROP CONSTRAINT prompts_agent_key_fkey,
	DROP CONSTRAINT prompts_conversation_key_fkey;
ALTER TABLE compactions
	DROP CONSTRAINT compactions_conversation_key_fkey;
ALTER TABLE message_pieces
	DROP CONSTRAINT message_pieces_message_key_fkey;
ALTER TABLE compaction_claims
	DROP CONSTRAINT compaction_claims_conversation_key_fkey;

-- Keys.
ALTER TABLE agents
	DROP CONSTRAINT agents_key_key,
	ADD CONSTRAINT agents_key_key UNIQUE (org, key),
	DROP CONSTRAINT agents_pkey,
	ADD CONSTRAINT agents_pkey PRIMARY KEY (org, id);
ALTER TABLE agent_heads
	DROP CONSTRAINT agent_heads_pkey,
	ADD CONSTRAINT agent_heads_pkey PRIMARY KEY (org, agent_id);
ALTER TABLE events
	DROP CONSTRAINT events_pkey,
	ADD CONSTRAINT events_pkey PRIMARY KEY (org, agent_id, seq);
ALTER TABLE folders
	DROP CONSTRAINT folders_id_key,
	ADD CONSTRAINT folders_id_key UNIQUE (org, id),
	DROP CONSTRAINT folders_pkey,
	ADD CONSTRAINT folders_pkey PRIMARY KEY (org, key);
ALTER TABLE files
	DROP CONSTRAINT files_id_key,
	ADD CONSTRAINT files_id_key UNIQUE (org, id),
	DROP CONSTRAINT files_replaces_key,
	ADD CONSTRAINT files_replaces_key UNIQUE (org, replaces),
	DROP CONSTRAINT files_pkey,
	ADD CONSTRAINT files_pkey PRIMARY KEY (org, key);
ALTER TABLE file_originals
	DROP CONSTRAINT file_originals_pkey,
	ADD CONSTRAINT file_originals_pkey PRIMARY KEY (org, file_key, ordinal);
ALTER TABLE file_segments
	DROP CONSTRAINT file_segments_pkey,
	ADD CONSTRAINT file_segments_pkey PRIMARY KEY (org, file_key, generation, ordinal);
ALTER TABLE chunks
	DROP CONSTRAINT chunks_place_key,
	ADD CONSTRAINT chunks_place_key UNIQUE (org, file_key, generation, ordinal),
	DROP CONSTRAINT chunks_pkey,
	ADD CONSTRAINT chunks_pkey PRIMARY KEY (org, key);
ALTER TABLE chunk_vectors
	DROP CONSTRAINT chunk_vectors_pkey,
	ADD CONSTRAINT chunk_vectors_pkey PRIMARY KEY (org, chunk_key, space_id);
ALTER TABLE embed_batches
	DROP CONSTRAINT embed_batches_pkey,
	ADD CONSTRAINT embed_batches_pkey PRIMARY KEY (org, file_key, space_id, generation, first_ordinal);
ALTER TABLE agent_folders
	DROP CONSTRAINT agent_folders_pkey,
	ADD CONSTRAINT agent_folders_pkey PRIMARY KEY (org, agent_id, folder_key);
ALTER TABLE agent_files
	DROP CONSTRAINT agent_files_pkey,
	ADD CONSTRAINT agent_files_pkey PRIMARY KEY (org, agent_id, file_key);
ALTER TABLE embed_refusals
	DROP CONSTRAINT embed_refusals_pkey,
	ADD CONSTRAINT embed_refusals_pkey PRIMARY KEY (org, file_key, space_id);
ALTER TABLE gram_blocks
	DROP CONSTRAINT gram_blocks_pkey,
	ADD CONSTRAINT gram_blocks_pkey PRIMARY KEY (org, key);
ALTER TABLE gram_units
	DROP CONSTRAINT gram_units_pkey,
	ADD CONSTRAINT gram_units_pkey PRIMARY KEY (org, block_key, unit, file_key);
ALTER TABLE deleted_places
	DROP CONSTRAINT deleted_places_pkey,
	ADD CONSTRAINT deleted_places_pkey PRIMARY KEY (org, id);
ALTER TABLE event_consumers
	DROP CONSTRAINT event_consumers_pkey,
	ADD CONSTRAINT event_consumers_pkey PRIMARY KEY (org, agent_id, name);
ALTER TABLE conversations
	DROP CONSTRAINT conversations_id_key,
	ADD CONSTRAINT conversations_id_key UNIQUE (org, id),
	DROP CONSTRAINT conversations_pkey,
	ADD CONSTRAINT conversations_pkey PRIMARY KEY (org, key);
ALTER TABLE messages
	DROP CONSTRAINT messages_id_key,
	ADD CONSTRAINT messages_id_key UNIQUE (org, id),
	DROP CONSTRAINT messages_position_key,
	ADD CONSTRAINT messages_position_key UNIQUE (org, conversation_key, position),
	DROP CONSTRAINT messages_seq_key,
	ADD CONSTRAINT messages_seq_key UNIQUE (org, agent_key, seq),
	DROP CONSTRAINT messages_pkey,
	ADD CONSTRAINT messages_pkey PRIMARY KEY (org, key);
ALTER TABLE tool_calls
	DROP CONSTRAINT tool_calls_pkey,
	ADD CONSTRAINT tool_calls_pkey PRIMARY KEY (org, conversation_key, call_id, position);
ALTER TABLE clips
	DROP CONSTRAINT clips_pkey,
	ADD CONSTRAINT clips_pkey PRIMARY KEY (org, id);
ALTER TABLE forgotten_agents
	DROP CONSTRAINT forgotten_agents_pkey,
	ADD CONSTRAINT forgotten_agents_pkey PRIMARY KEY (org, agent_key);
ALTER TABLE message_vectors
	DROP CONSTRAINT message_vectors_pkey,
	ADD CONSTRAINT message_vectors_pkey PRIMARY KEY (org, message_key, space_id);
ALTER TABLE archives
	DROP CONSTRAINT archives_id_key,
	ADD CONSTRAINT archives_id_key UNIQUE (org, id),
	DROP CONSTRAINT archives_pkey,
	ADD CONSTRAINT archives_pkey PRIMARY KEY (org, key);
ALTER TABLE agent_archives
	DROP CONSTRAINT agent_archives_pkey,
	ADD CONSTRAINT agent_archives_pkey PRIMARY KEY (org, agent_id, archive_key);
ALTER TABLE passages
	DROP CONSTRAINT passages_id_key,
	ADD CONSTRAINT passages_id_key UNIQUE (org, id),
	DROP CONSTRAINT passages_text_key,
	ADD CONSTRAINT passages_text_key UNIQUE (org, archive_key, sha256),
	DROP CONSTRAINT passages_pkey,
	ADD CONSTRAINT passages_pkey PRIMARY KEY (org, key);
ALTER TABLE blocks
	DROP CONSTRAINT blocks_id_key,
	ADD CONSTRAINT blocks_id_key UNIQUE (org, id),
	DROP CONSTRAINT blocks_label_key,
	ADD CONSTRAINT blocks_label_key UNIQUE (org, key, label),
	DROP CONSTRAINT blocks_pkey,
	ADD CONSTRAINT blocks_pkey PRIMARY KEY (org, key);
ALTER TABLE block_versions
	DROP CONSTRAINT block_versions_pkey,
	ADD CONSTRAINT block_versions_pkey PRIMARY KEY (org, block_key, version);
ALTER TABLE agent_blocks
	DROP CONSTRAINT agent_blocks_label_key,
	ADD CONSTRAINT agent_blocks_label_key UNIQUE (org, agent_id, label),
	DROP CONSTRAINT agent_blocks_pkey,
	ADD CONSTRAINT agent_blocks_pkey PRIMARY KEY (org, agent_id, block_key);
ALTER TABLE unembedded_passages
	DROP CONSTRAINT unembedded_passages_pkey,
	ADD CONSTRAINT unembedded_passages_pkey PRIMARY KEY (org, passage_key);
ALTER TABLE passage_vectors
	DROP CONSTRAINT passage_vectors_pkey,
	ADD CONSTRAINT passage_vectors_pkey PRIMARY KEY (org, passage_key, space_id);
ALTER TABLE prompt_parts
	DROP CONSTRAINT prompt_parts_pkey,
	ADD CONSTRAINT prompt_parts_pkey PRIMARY KEY (org, agent_key, sha256);
ALTER TABLE prompts
	DROP CONSTRAINT prompts_once,
	ADD CONSTRAINT prompts_once UNIQUE (org, conversation_key, seq, sha256),
	DROP CONSTRAINT prompts_pkey,
	ADD CONSTRAINT prompts_pkey PRIMARY KEY (org, key);
ALTER TABLE compactions
	DROP CONSTRAINT compactions_frame_key,
	ADD CONSTRAINT compactions_frame_key UNIQUE (org, conversation_key, frame),
	DROP CONSTRAINT compactions_id_key,
	ADD CONSTRAINT compactions_id_key UNIQUE (org, id),
	DROP CONSTRAINT compactions_pkey,
	ADD CONSTRAINT compactions_pkey PRIMARY KEY (org, key);
ALTER TABLE message_pieces
	DROP CONSTRAINT message_pieces_pkey,
	ADD CONSTRAINT message_pieces_pkey PRIMARY KEY (org, key);

-- References.
ALTER TABLE agent_heads
	ADD CONSTRAINT agent_heads_agent_id_fkey FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE;
ALTER TABLE events
	ADD CONSTRAINT events_agent_id_fkey FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE;
ALTER TABLE files
	ADD CONSTRAINT files_folder_key_fkey FOREIGN KEY (org, folder_key) REFERENCES folders (org, key) ON DELETE CASCADE,
	ADD CONSTRAINT files_replaces_fkey
		FOREIGN KEY (org, replaces) REFERENCES files (org, key) ON DELETE SET NULL (replaces);
ALTER TABLE file_originals
	ADD CONSTRAINT file_originals_file_key_fkey
		FOREIGN KEY (org, file_key) REFERENCES files (org, key) ON DELETE CASCADE;
ALTER TABLE file_segments
	ADD CONSTRAINT file_segments_file_key_fkey FOREIGN KEY (org, file_key) REFERENCES files (org, key) ON DELETE CASCADE;
ALTER TABLE chunks
	ADD CONSTRAINT chunks_file_key_fkey FOREIGN KEY (org, file_key) REFERENCES files (org, key) ON DELETE CASCADE;
ALTER TABLE chunk_vectors
	ADD CONSTRAINT chunk_vectors_chunk_key_fkey
		FOREIGN KEY (org, chunk_key) REFERENCES chunks (org, key) ON DELETE CASCADE;
ALTER TABLE embed_batches
	ADD CONSTRAINT embed_batches_file_key_fkey FOREIGN KEY (org, file_key) REFERENCES files (org, key) ON DELETE CASCADE;
ALTER TABLE agent_folders
	ADD CONSTRAINT agent_folders_agent_id_fkey FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	ADD CONSTRAINT agent_folders_folder_key_fkey
		FOREIGN KEY (org, folder_key) REFERENCES folders (org, key) ON DELETE CASCADE;
ALTER TABLE agent_files
	ADD CONSTRAINT agent_files_agent_id_fkey FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	ADD CONSTRAINT agent_files_file_key_fkey FOREIGN KEY (org, file_key) REFERENCES files (org, key) ON DELETE CASCADE;
ALTER TABLE embed_refusals
	ADD CONSTRAINT embed_refusals_file_key_fkey
		FOREIGN KEY (org, file_key) REFERENCES files (org, key) ON DELETE CASCADE;
ALTER TABLE gram_blocks
	ADD CONSTRAINT gram_blocks_folder_key_fkey
		FOREIGN KEY (org, folder_key) REFERENCES folders (org, key) ON DELETE CASCADE;
ALTER TABLE gram_units
	ADD CONSTRAINT gram_units_block_key_fkey
		FOREIGN KEY (org, block_key) REFERENCES gram_blocks (org, key) ON DELETE CASCADE;
ALTER TABLE event_consumers
	ADD CONSTRAINT event_consumers_agent_id_fkey
		FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE;
ALTER TABLE conversations
	ADD CONSTRAINT conversations_agent_key_fkey
		FOREIGN KEY (org, agent_key) REFERENCES agents (org, key) ON DELETE CASCADE;
ALTER TABLE tool_calls
	ADD CONSTRAINT tool_calls_conversation_key_fkey
		FOREIGN KEY (org, conversation_key) REFERENCES conversations (org, key) ON DELETE CASCADE;
ALTER TABLE clips
	ADD CONSTRAINT clips_agent_key_fkey FOREIGN KEY (org, agent_key) REFERENCES agents (org, key) ON DELETE CASCADE,
	ADD CONSTRAINT clips_conversation_key_fkey
		FOREIGN KEY (org, conversation_key) REFERENCES conversations (org, key) ON DELETE CASCADE;
ALTER TABLE message_vectors
	ADD CONSTRAINT message_vectors_message_key_fkey
		FOREIGN KEY (org, message_key) REFERENCES messages (org, key) ON DELETE CASCADE;
ALTER TABLE agent_archives
	ADD CONSTRAINT agent_archives_agent_id_fkey
		FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	ADD CONSTRAINT agent_archives_archive_key_fkey
		FOREIGN KEY (org, archive_key) REFERENCES archives (org, key) ON DELETE CASCADE;
ALTER TABLE passages
	ADD CONSTRAINT passages_archive_key_fkey FOREIGN KEY (org, archive_key) REFERENCES archives (org, key);
ALTER TABLE block_versions
	ADD CONSTRAINT block_versions_block_key_fkey
		FOREIGN KEY (org, block_key) REFERENCES blocks (org, key) ON DELETE CASCADE;
ALTER TABLE agent_blocks
	ADD CONSTRAINT agent_blocks_agent_id_fkey FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	ADD CONSTRAINT agent_blocks_block
		FOREIGN KEY (org, block_key, label) REFERENCES blocks (org, key, label) ON UPDATE CASCADE ON DELETE CASCADE;
ALTER TABLE unembedded_passages
	ADD CONSTRAINT unembedded_passages_passage_key_fkey
		FOREIGN KEY (org, passage_key) REFERENCES passages (org, key) ON DELETE CASCADE;
ALTER TABLE passage_vectors
	ADD CONSTRAINT passage_vectors_passage_key_fkey
		FOREIGN KEY (org, passage_key) REFERENCES passages (org, key) ON DELETE CASCADE;
ALTER TABLE prompt_parts
	ADD CONSTRAINT prompt_parts_agent_key_fkey
		FOREIGN KEY (org, agent_key) REFERENCES agents (org, key) ON DELETE CASCADE;
ALTER TABLE prompts
	ADD CONSTRAINT prompts_agent_key_fkey FOREIGN KEY (org, agent_key) REFERENCES agents (org, key) ON DELETE CASCADE,
	ADD CONSTRAINT prompts_conversation_key_fkey
		FOREIGN KEY (org, conversation_key) REFERENCES conversations (org, key) ON DELETE CASCADE;
ALTER TABLE compactions
	ADD CONSTRAINT compactions_conversation_key_fkey
		FOREIGN KEY (org, conversation_key) REFERENCES conversations (org, key) ON DELETE CASCADE;
ALTER TABLE message_pieces
	ADD CONSTRAINT message_pieces_message_key_fkey
		FOREIGN KEY (org, message_key) REFERENCES messages (org, key) ON DELETE CASCADE;
ALTER TABLE compaction_claims
	ADD CONSTRAINT compaction_claims_conversation_key_fkey
		FOREIGN KEY (org, conversation_key) REFERENCES conversations (org, key) ON DELETE CASCADE;

-- Indexes.
DROP INDEX agent_archives_archive;
CREATE INDEX agent_archives_archive ON agent_archives (org, archive_key);
DROP INDEX agent_archives_default;
CREATE UNIQUE INDEX agent_archives_default ON agent_archives (org, agent_id) WHERE is_default;
DROP INDEX agent_blocks_block;
CREATE INDEX agent_blocks_block ON agent_blocks (org, block_key, label);
DROP INDEX agent_files_file;
CREATE INDEX agent_files_file ON agent_files (org, file_key);
DROP INDEX agent_files_open;
CREATE INDEX agent_files_open ON agent_files (org, agent_id, last_used_seq) WHERE is_open;
DROP INDEX agent_folders_folder;
CREATE INDEX agent_folders_folder ON agent_folders (org, folder_key);
DROP INDEX archives_deleted;
CREATE INDEX archives_deleted ON archives (org, key) WHERE deleted_at IS NOT NULL;
DROP INDEX chunk_vectors_scope;
CREATE INDEX chunk_vectors_scope ON chunk_vectors (org, space_id, folder_key);
DROP INDEX chunks_folder;
CREATE INDEX chunks_folder ON chunks (org, folder_key, key);
DROP INDEX chunks_id;
CREATE INDEX chunks_id ON chunks (org, id);
DROP INDEX clips_agent;
CREATE INDEX clips_agent ON clips (org, agent_key);
DROP INDEX clips_conversation;
CREATE INDEX clips_conversation ON clips (org, conversation_key);
DROP INDEX conversations_agent;
CREATE INDEX conversations_agent ON conversations (org, agent_key, created_at, key);
DROP INDEX conversations_default;
CREATE UNIQUE INDEX conversations_default ON conversations (org, agent_key) WHERE is_default;
DROP INDEX conversations_unembedded;
CREATE INDEX conversations_unembedded ON conversations (org, agent_key, key) WHERE unembedded AND deleted_at IS NULL;
DROP INDEX embed_batches_space;
CREATE INDEX embed_batches_space ON embed_batches (org, space_id);
DROP INDEX embed_batches_turn;
CREATE INDEX embed_batches_turn ON embed_batches (org, folder_key, space_id, turn) WHERE turn IS NOT NULL;
DROP INDEX files_folder;
CREATE INDEX files_folder ON files (org, folder_key, created_at, key);
DROP INDEX files_listing;
CREATE INDEX files_listing ON files (org, folder_key, name COLLATE "C", key) WHERE replaces IS NULL;
DROP INDEX files_name_key;
CREATE UNIQUE INDEX files_name_key ON files (org, folder_key, name) WHERE replaces IS NULL;
DROP INDEX files_sizes;
CREATE INDEX files_sizes ON files (org, folder_key, size_bytes) WHERE replaces IS NULL;
DROP INDEX files_turn;
CREATE INDEX files_turn ON files (org, folder_key, (size_bytes > 1048576), turn) WHERE turn IS NOT NULL;
DROP INDEX files_without_grams;
CREATE INDEX files_without_grams ON files (org, folder_key) WHERE generation > 0 AND gram_generation <> generation;
DROP INDEX gram_blocks_folder;
CREATE INDEX gram_blocks_folder ON gram_blocks (org, folder_key);
DROP INDEX message_pieces_message;
CREATE INDEX message_pieces_message ON message_pieces (org, message_key);
DROP INDEX message_pieces_scope;
CREATE INDEX message_pieces_scope ON message_pieces (org, agent_key, conversation_key);
DROP INDEX message_vectors_scope;
CREATE INDEX message_vectors_scope ON message_vectors (org, space_id, agent_key, conversation_key);
DROP INDEX messages_otid_key;
CREATE UNIQUE INDEX messages_otid_key ON messages (org, agent_key, otid) WHERE otid IS NOT NULL;
DROP INDEX messages_time;
CREATE INDEX messages_time ON messages (org, agent_key, created_at, key);
DROP INDEX passage_vectors_scope;
CREATE INDEX passage_vectors_scope ON passage_vectors (org, space_id, archive_key);
DROP INDEX passages_archive;
CREATE INDEX passages_archive ON passages (org, archive_key, happened_at, key);
DROP INDEX prompts_agent;
CREATE INDEX prompts_agent ON prompts (org, agent_key);
DROP INDEX tool_calls_open;
CREATE INDEX tool_calls_open ON tool_calls (org, conversation_key, position) WHERE result_position IS NULL;
DROP INDEX unembedded_passages_refused;
CREATE INDEX unembedded_passages_refused ON unembedded_passages (org, archive_key) WHERE refused IS NOT NULL;
DROP INDEX unembedded_passages_waiting;
CREATE INDEX unembedded_passages_waiting ON unembedded_passages (org, archive_key, passage_key) WHERE refused IS NULL;

-- The primary keys serve what these served.
DROP INDEX messages_org;
DROP INDEX passages_org;
CREATE UNIQUE INDEX folders_name_key ON folders (org, name) WHERE deleted_at IS NULL;
CREATE INDEX folders_org ON folders (org, created_at, key) WHERE deleted_at IS NULL;

CREATE OR REPLACE FUNCTION keep_deleted_places() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO deleted_places (id, org, created_at, key)
	SELECT id, org, created_at, key FROM gone
	ON CONFLICT (org, id) DO NOTHING;
	RETURN NULL;
END $$;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
