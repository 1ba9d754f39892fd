-- Rows as the program with migration 21 leaves them, in each table of a schema of that version: three organizations with
-- ten agents each, and as many messages as the setting loci.messages says. Counts of other rows follow from it.
CREATE TEMP TABLE n AS SELECT current_setting('loci.messages')::int AS total, 30 AS agents;

-- Weights and terms as texts of twenty words have them.
CREATE TEMP TABLE words AS
SELECT w, ('{' || string_agg(term || ':' || 0.25 + (term % 8) / 8.0, ',' ORDER BY term) || '}/16777216')::sparsevec AS lex,
       array_agg(term ORDER BY term) AS terms
FROM generate_series(0, 499) AS w,
     LATERAL (SELECT DISTINCT 1 + (w * 7919 + i * i * 104729) % 16777215 AS term FROM generate_series(1, 20) AS i) AS t
GROUP BY w;
CREATE UNIQUE INDEX ON words (w);

INSERT INTO organizations (name) VALUES ('second'), ('third');
INSERT INTO api_keys (org, name, prefix, sha256) SELECT org, 'key', 'loci_', sha256(name::bytea) FROM organizations;
DELETE FROM api_keys;
INSERT INTO embedding_spaces (provider, model, dimension) VALUES ('test', 'bag-of-words', 4);
INSERT INTO model_factors SELECT org, 'large', 1.1, 1.2 FROM organizations;

INSERT INTO agents (org, name, agent_type, system)
SELECT 1 + i % 3, 'agent ' || i, 'memgpt_v2_agent', 'Answer.' FROM n, generate_series(1, n.agents) AS i;
INSERT INTO agent_heads (agent_id, org, seq) SELECT id, org, 2 * total FROM agents, n;
INSERT INTO event_consumers (agent_id, name, org, seq) SELECT id, 'reader', org, 1 FROM agents;

-- Conversations: the default one has the messages, another is empty.
INSERT INTO conversations (org, agent_key, is_default, messages)
SELECT org, key, true, total / agents + (key <= total % agents)::int FROM agents, n;
INSERT INTO conversations (org, agent_key, deleted_at) SELECT org, key, now() FROM agents WHERE key % 2 = 0;
INSERT INTO messages (id, org, agent_key, seq, conversation_key, position, session, role, content, otid, tokens,
                      created_at, lex, terms)
SELECT gen_random_uuid(), c.org, c.agent_key, 1 + i / agents, c.key, 1 + i / agents, 1,
       (ARRAY['user', 'assistant', 'tool', 'assistant'])[1 + i / agents % 4],
       json_build_array(json_build_object('type', 'text', 'text', repeat('what was said in message ' || i || ' ', 9))),
       CASE WHEN i % 5 = 0 THEN 'otid-' || i END, 60, now() - interval '1 second' * (total - i), w.lex,
       (SELECT array_agg(c.agent_key << 24 | t) FROM unnest(w.terms) AS t)
FROM n, generate_series(0, total - 1) AS i
JOIN conversations c ON c.agent_key = 1 + i % 30 AND c.is_default
JOIN words w ON w.w = i % 500;
INSERT INTO events (agent_id, seq, org, type, ref_id, at)
SELECT a.id, m.seq, m.org, 'message', 'message-' || m.id, m.created_at FROM messages m JOIN agents a ON a.key = m.agent_key;
INSERT INTO message_vectors (space_id, message_key, org, agent_key, conversation_key, position, role, created_at, embedding)
SELECT 1, key, org, agent_key, conversation_key, position, role, created_at, ('[0,1,' || key % 7 || ',0]')::halfvec
FROM messages WHERE key % 2 = 0;
INSERT INTO message_pieces (org, message_key, agent_key, conversation_key, role, created_at, lex, terms)
SELECT org, key, agent_key, conversation_key, role, created_at, lex, terms FROM messages WHERE key % 20 = 0;
INSERT INTO tool_calls (conversation_key, call_id, position, name, result_position)
SELECT conversation_key, 'call-' || position, position, 'grep_files', CASE WHEN key % 3 > 0 THEN position + 1 END
FROM messages WHERE role = 'tool';
INSERT INTO blobs (org, sha256, size_bytes, zstd, bytes)
SELECT o.org, sha256(i::text::bytea), 3, false, 'abc' FROM organizations o, generate_series(1, 50) AS i;
INSERT INTO clips (id, org, sha256, agent_key, conversation_key, position, part)
SELECT 'clip-' || key, org, sha256((1 + key % 50)::text::bytea), agent_key, conversation_key, position, 0
FROM messages WHERE key % 50 = 0;
INSERT INTO prompt_parts (agent_key, sha256, org, bytes)
SELECT key, sha256(i::text::bytea), org, 'part' FROM agents, generate_series(1, 100) AS i;
INSERT INTO prompts (org, agent_key, conversation_key, format, seq, context_window, tokens, sha256, parts, first_position,
                     last_position)
SELECT org, agent_key, key, 'openai', i, 8192, '{}', sha256(i::text::bytea), ARRAY[sha256('1')], 1, i
FROM conversations, generate_series(1, 50) AS i WHERE is_default;
INSERT INTO compactions (org, conversation_key, frame, trigger, mode, model_calls, prompt_tokens, output_tokens,
                         window_tokens, tokens_before, tokens_after, messages_before, messages_after, duration_ms, before)
SELECT org, key, i, 'window', 'sliding', 0, 0, 0, 8192, 8000, 5000, 80, 50, 3, '{}'
FROM conversations, generate_series(1, 10) AS i WHERE is_default;
INSERT INTO compaction_claims SELECT org, key, gen_random_uuid(), now() FROM conversations WHERE is_default;

-- Agents that were deleted while their messages were not yet.
DELETE FROM agents WHERE key % 10 = 9;
INSERT INTO forgotten_agents SELECT DISTINCT agent_key FROM messages WHERE agent_key % 10 = 9;

-- Folders, of which each third was deleted and has the name of one that was made since.
INSERT INTO folders (org, name) SELECT org, 'folder ' || i FROM organizations, generate_series(1, 6) AS i;
INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256, generation, gram_generation,
                   lines, chunks)
SELECT d.org, d.key, 'file ' || i, 'file', 'text/plain', 9, sha256('x'), 1, 1, 1, greatest(total / 1440, 1)
FROM n, folders d, generate_series(1, 40) AS i;
INSERT INTO files (org, folder_key, name, original_name, media_type, size_bytes, sha256, replaces)
SELECT org, folder_key, name, original_name, media_type, size_bytes, sha256, key FROM files WHERE key % 20 = 0;
INSERT INTO file_originals SELECT key, 0, org, 'some text' FROM files;
INSERT INTO file_segments SELECT key, 1, 0, org, 0, 1, false, 'some text' FROM files WHERE generation = 1;
INSERT INTO chunks (file_key, generation, ordinal, org, folder_key, first_line, last_line, start_byte, overlap_bytes,
                    heading, text, lex, terms)
SELECT f.key, 1, i, f.org, f.folder_key, 0, 0, 0, 0, '', repeat('some text ', 30), w.lex, w.terms
FROM files f, generate_series(1, f.chunks) AS i JOIN words w ON w.w = i % 500;
INSERT INTO chunk_vectors (space_id, chunk_key, org, folder_key, embedding)
SELECT 1, key, org, folder_key, '[1,0,0,0]' FROM chunks;
INSERT INTO embed_batches (file_key, space_id, generation, first_ordinal, end_ordinal, org, folder_key)
SELECT key, 1, 2, 0, 9, org, folder_key FROM files WHERE key % 10 = 0;
INSERT INTO embed_refusals SELECT key, 1, org, 1, 'no' FROM files WHERE key % 10 = 1;
INSERT INTO agent_folders (agent_id, folder_key, org)
SELECT a.id, d.key, a.org FROM agents a JOIN folders d ON d.org = a.org WHERE d.key % 3 > 0;
INSERT INTO agent_files (agent_id, file_key, org, is_open, last_used_seq, last_used_at)
SELECT d.agent_id, f.key, f.org, f.key % 8 = 0, 1, now() FROM agent_folders d JOIN files f USING (folder_key);
INSERT INTO gram_blocks (org, folder_key, units, bits) SELECT org, key, 40, repeat('x', 5000)::bytea FROM folders;
INSERT INTO gram_units (block_key, unit, file_key, generation, first_ordinal, end_ordinal)
SELECT b.key, f.key % 40, f.key, 1, 0, 1 FROM gram_blocks b JOIN files f USING (folder_key);
UPDATE folders SET org = NULL, updated_at = now() WHERE key % 3 = 0;
INSERT INTO folders (org, name) SELECT DISTINCT f.org, d.name FROM folders d JOIN files f ON f.folder_key = d.key
WHERE d.org IS NULL;
INSERT INTO deleted_places (id, org, created_at, key) SELECT DISTINCT d.id, f.org, d.created_at, d.key
FROM folders d JOIN files f ON f.folder_key = d.key WHERE d.org IS NULL;

INSERT INTO archives (org, name) SELECT org, 'archive ' || i FROM organizations, generate_series(1, 5) AS i;
UPDATE archives SET deleted_at = now() WHERE key % 5 = 0;
INSERT INTO agent_archives (agent_id, archive_key, org, is_default)
SELECT a.id, r.key, a.org, r.name = 'archive 1' FROM agents a JOIN archives r ON r.org = a.org;
INSERT INTO passages (org, archive_key, text, sha256, lex, terms)
SELECT r.org, r.key, 'passage ' || i, sha256(i::text::bytea), w.lex, w.terms::bigint[]
FROM n, archives r, generate_series(1, total / 4 / 15) AS i JOIN words w ON w.w = i % 500;
INSERT INTO passage_vectors (space_id, passage_key, org, archive_key, tags, happened_at, embedding)
SELECT 1, key, org, archive_key, tags, happened_at, '[0,0,0,1]' FROM passages WHERE key % 2 = 0;
INSERT INTO unembedded_passages SELECT key, org, archive_key, CASE WHEN key % 4 = 1 THEN 'no' END FROM passages
WHERE key % 2 = 1;

INSERT INTO blocks (org, label, value) SELECT org, 'persona', 'v' FROM organizations, generate_series(1, 20) AS i;
INSERT INTO block_versions (block_key, version, org, author, label, value, limit_chars, read_only)
SELECT key, i, org, 'agent', label, value, 100, false FROM blocks, generate_series(1, 20) AS i;
INSERT INTO agent_blocks (agent_id, block_key, org, label)
SELECT a.id, b.key, a.org, b.label FROM agents a
JOIN (SELECT org, min(key) AS key, label FROM blocks GROUP BY org, label) b ON b.org = a.org;
