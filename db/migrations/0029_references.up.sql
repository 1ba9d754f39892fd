-- Each column that names a row of a tenant's table has a foreign key, so that no row can be tied to another
-- organization's or to none. A row that repeats a column of the row it belongs to refers to both columns together.

-- The log of an agent: its conversations refer to it, and their messages to them. agent_key is the agent's, and NULL
-- once the agent is deleted: the log is then cleared in the background, its messages first, the row here last.
CREATE TABLE agent_logs (
	org       integer NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	key       bigint  NOT NULL,
	agent_key bigint,
	PRIMARY KEY (org, key),
	CONSTRAINT agent_logs_agent FOREIGN KEY (org, agent_key) REFERENCES agents (org, key),
	CONSTRAINT agent_logs_key CHECK (agent_key = key)
);
CREATE UNIQUE INDEX agent_logs_of_agent ON agent_logs (org, agent_key);
CREATE INDEX agent_logs_deleted ON agent_logs (org, key) WHERE agent_key IS NULL;
INSERT INTO agent_logs (org, key, agent_key) SELECT org, key, key FROM agents;

-- Messages whose agent is deleted lack their conversations, which went with it.
ALTER TABLE conversations DROP CONSTRAINT conversations_agent_key_fkey;
INSERT INTO agent_logs (org, key)
SELECT DISTINCT m.org, m.agent_key FROM messages m
WHERE NOT EXISTS (SELECT FROM agents a WHERE a.org = m.org AND a.key = m.agent_key);
INSERT INTO conversations (org, key, agent_key, deleted_at) OVERRIDING SYSTEM VALUE
SELECT DISTINCT m.org, m.conversation_key, m.agent_key, now() FROM messages m
WHERE NOT EXISTS (SELECT FROM conversations c WHERE c.org = m.org AND c.key = m.conversation_key);
DROP TABLE forgotten_agents;

-- A block of the index of n-grams keeps the number of its parts: those of a deleted file are deleted with it.
ALTER TABLE gram_blocks ADD COLUMN parts integer;
UPDATE gram_blocks b SET parts = (SELECT count(*) FROM gram_units u WHERE u.org = b.org AND u.block_key = b.key);
ALTER TABLE gram_blocks ALTER COLUMN parts SET NOT NULL;
DELETE FROM gram_units u WHERE NOT EXISTS (SELECT FROM files f WHERE f.org = u.org AND f.key = u.file_key);

-- The keys that the references below name.
ALTER TABLE conversations ADD CONSTRAINT conversations_agent_key UNIQUE (org, agent_key, key);
ALTER TABLE runs ADD CONSTRAINT runs_agent_key UNIQUE (org, agent_key, key);
ALTER TABLE files ADD CONSTRAINT files_folder_key UNIQUE (org, folder_key, key);
DROP INDEX chunks_folder;
ALTER TABLE chunks ADD CONSTRAINT chunks_folder_key UNIQUE (org, folder_key, key);
ALTER TABLE passages ADD CONSTRAINT passages_archive_key UNIQUE (org, archive_key, key);

-- A row that repeats a column wrongly, or names a row that does not exist, fits no reference below, and stops the
-- migration before it has changed anything.
DO $$
DECLARE
	r   record;
	bad bigint;
BEGIN
	FOR r IN SELECT * FROM (VALUES
		('conversations', ARRAY['agent_key'], 'agent_logs', ARRAY['key']),
		('messages', ARRAY['agent_key', 'conversation_key'], 'conversations', ARRAY['agent_key', 'key']),
		('message_pieces', ARRAY['agent_key', 'conversation_key'], 'conversations', ARRAY['agent_key', 'key']),
		('message_vectors', ARRAY['agent_key', 'conversation_key'], 'conversations', ARRAY['agent_key', 'key']),
		('clips', ARRAY['agent_key', 'conversation_key'], 'conversations', ARRAY['agent_key', 'key']),
		('prompts', ARRAY['agent_key', 'conversation_key'], 'conversations', ARRAY['agent_key', 'key']),
		('runs', ARRAY['agent_key', 'conversation_key'], 'conversations', ARRAY['agent_key', 'key']),
		('steps', ARRAY['agent_key', 'run_key'], 'runs', ARRAY['agent_key', 'key']),
		('chunks', ARRAY['folder_key', 'file_key'], 'files', ARRAY['folder_key', 'key']),
		('embed_batches', ARRAY['folder_key', 'file_key'], 'files', ARRAY['folder_key', 'key']),
		('chunk_vectors', ARRAY['folder_key', 'chunk_key'], 'chunks', ARRAY['folder_key', 'key']),
		('passage_vectors', ARRAY['archive_key', 'passage_key'], 'passages', ARRAY['archive_key', 'key']),
		('unembedded_passages', ARRAY['archive_key', 'passage_key'], 'passages', ARRAY['archive_key', 'key'])
	) AS v (child, columns, parent, keys)
	LOOP
		EXECUTE format('SELECT count(*) FROM %I c WHERE NOT EXISTS (SELECT FROM %I p WHERE p.org = c.org AND %s)',
			r.child, r.parent, (SELECT string_agg(format('p.%I = c.%I', k, c), ' AND ')
			                    FROM unnest(r.columns, r.keys) AS u (c, k))) INTO bad;
		IF bad > 0 THEN
			RAISE EXCEPTION '% rows of table % name by their columns % no row of table % (columns %): '
				'correct these columns, or delete the rows', bad, r.child, array_to_string(r.columns, ', '), r.parent,
				array_to_string(r.keys, ', ');
		END IF;
	END LOOP;
END $$;

-- References.
ALTER TABLE conversations
	ADD CONSTRAINT conversations_log FOREIGN KEY (org, agent_key) REFERENCES agent_logs (org, key);
ALTER TABLE messages
	ADD CONSTRAINT messages_conversation
		FOREIGN KEY (org, agent_key, conversation_key) REFERENCES conversations (org, agent_key, key);
-- Two references each: a key of messages with all these columns would be one more index for each append.
ALTER TABLE message_pieces
	ADD CONSTRAINT message_pieces_conversation
		FOREIGN KEY (org, agent_key, conversation_key) REFERENCES conversations (org, agent_key, key);
DROP INDEX message_vectors_scope;
CREATE INDEX message_vectors_scope ON message_vectors (org, agent_key, conversation_key, space_id);
ALTER TABLE message_vectors
	ADD CONSTRAINT message_vectors_conversation
		FOREIGN KEY (org, agent_key, conversation_key) REFERENCES conversations (org, agent_key, key);
ALTER TABLE clips
	DROP CONSTRAINT clips_conversation_key_fkey,
	ADD CONSTRAINT clips_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE;
ALTER TABLE prompts
	DROP CONSTRAINT prompts_conversation_key_fkey,
	ADD CONSTRAINT prompts_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE;
ALTER TABLE runs
	DROP CONSTRAINT runs_conversation,
	ADD CONSTRAINT runs_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE;
ALTER TABLE steps
	DROP CONSTRAINT steps_run,
	ADD CONSTRAINT steps_run FOREIGN KEY (org, agent_key, run_key)
		REFERENCES runs (org, agent_key, key) ON DELETE CASCADE;
ALTER TABLE chunks
	DROP CONSTRAINT chunks_file_key_fkey,
	ADD CONSTRAINT chunks_file FOREIGN KEY (org, folder_key, file_key)
		REFERENCES files (org, folder_key, key) ON DELETE CASCADE;
ALTER TABLE embed_batches
	DROP CONSTRAINT embed_batches_file_key_fkey,
	ADD CONSTRAINT embed_batches_file FOREIGN KEY (org, folder_key, file_key)
		REFERENCES files (org, folder_key, key) ON DELETE CASCADE;
ALTER TABLE chunk_vectors
	DROP CONSTRAINT chunk_vectors_chunk_key_fkey,
	ADD CONSTRAINT chunk_vectors_chunk FOREIGN KEY (org, folder_key, chunk_key)
		REFERENCES chunks (org, folder_key, key) ON DELETE CASCADE;
ALTER TABLE passage_vectors
	DROP CONSTRAINT passage_vectors_passage_key_fkey,
	ADD CONSTRAINT passage_vectors_passage FOREIGN KEY (org, archive_key, passage_key)
		REFERENCES passages (org, archive_key, key) ON DELETE CASCADE;
ALTER TABLE unembedded_passages
	DROP CONSTRAINT unembedded_passages_passage_key_fkey,
	ADD CONSTRAINT unembedded_passages_passage FOREIGN KEY (org, archive_key, passage_key)
		REFERENCES passages (org, archive_key, key) ON DELETE CASCADE;
CREATE INDEX gram_units_file ON gram_units (org, file_key);
ALTER TABLE gram_units
	ADD CONSTRAINT gram_units_file FOREIGN KEY (org, file_key) REFERENCES files (org, key) ON DELETE CASCADE;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
