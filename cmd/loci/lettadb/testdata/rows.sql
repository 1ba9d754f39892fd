-- What a Letta server's database has after some years: rows of older versions, and others that break its own rules.
INSERT INTO alembic_version VALUES ('1c28e167b74f');
INSERT INTO organizations (id, name, is_deleted, privileged_tools) VALUES
	('org-00000000-0000-4000-8000-000000000000', 'default_org', false, false),
	('org-11111111-1111-4111-8111-111111111111', 'default', false, false),
	('org-22222222-2222-4222-8222-222222222222', 'gone', true, false);
INSERT INTO users (id, name, organization_id) VALUES
	('user-00000000-0000-4000-8000-000000000000', 'default_user', 'org-00000000-0000-4000-8000-000000000000');

INSERT INTO block (id, label, value, "limit", description, metadata_, is_template, read_only, version, organization_id, created_at) VALUES
	('block-00000000-0000-4000-8000-000000000001', 'human', 'Ada, born 1815', 5, 'who it is', '{"a": "x\u0000y"}', false, false, 3,
	 'org-00000000-0000-4000-8000-000000000000', '2024-05-01T10:00:00Z'),
	('block-00000000-0000-4000-8000-000000000002', 'my notes: été', 'n', 2000, NULL, NULL, false, true, 1,
	 'org-00000000-0000-4000-8000-000000000000', '2024-05-01T10:00:00Z'),
	('block-00000000-0000-4000-8000-000000000003', 'acme', 'of Acme', 2000, NULL, 'null', true, false, 1,
	 'org-11111111-1111-4111-8111-111111111111', '2024-05-01T10:00:00Z');
INSERT INTO block (id, label, value, "limit", is_template, read_only, is_deleted, organization_id) VALUES
	('block-00000000-0000-4000-8000-000000000004', 'deleted', 'x', 10, false, false, true,
	 'org-00000000-0000-4000-8000-000000000000');
INSERT INTO block_history (id, block_id, sequence_number, label, value, "limit", actor_type, actor_id, organization_id, created_at) VALUES
	('block_hist-2', 'block-00000000-0000-4000-8000-000000000001', 2, 'human', 'Ada, born 1816', 5, 'letta_agent', 'agent-1',
	 'org-00000000-0000-4000-8000-000000000000', '2024-05-01T11:00:00Z'),
	('block_hist-1', 'block-00000000-0000-4000-8000-000000000001', 1, 'human', 'Ada', 5, 'letta_user', NULL,
	 'org-00000000-0000-4000-8000-000000000000', '2024-05-01T10:00:00Z');
INSERT INTO blocks_tags (block_id, tag, organization_id) VALUES
	('block-00000000-0000-4000-8000-000000000001', 'people', 'org-00000000-0000-4000-8000-000000000000');

INSERT INTO sources (id, name, embedding_config, metadata_, organization_id, vector_db_provider, created_at) VALUES
	('source-00000000-0000-4000-8000-000000000001', 'manuals', '{"embedding_dim": 3}', '{"k": 1}',
	 'org-00000000-0000-4000-8000-000000000000', 'NATIVE', '2024-05-01T10:00:00Z');
INSERT INTO files (id, source_id, file_name, original_file_name, file_type, processing_status, error_message, organization_id, created_at) VALUES
	('file-00000000-0000-4000-8000-000000000001', 'source-00000000-0000-4000-8000-000000000001', 'manuals/guide.md', 'guide.md',
	 'text/x-markdown', 'completed', NULL, 'org-00000000-0000-4000-8000-000000000000', '2024-05-01T10:00:01Z'),
	('file-00000000-0000-4000-8000-000000000002', 'source-00000000-0000-4000-8000-000000000001', 'guide.md', 'guide.md',
	 'text/x-markdown', 'completed', NULL, 'org-00000000-0000-4000-8000-000000000000', '2024-05-01T10:00:02Z'),
	('file-00000000-0000-4000-8000-000000000003', 'source-00000000-0000-4000-8000-000000000001', 'old name/report.pdf', 'report.pdf',
	 'application/pdf', 'completed', NULL, 'org-00000000-0000-4000-8000-000000000000', '2024-05-01T10:00:03Z'),
	('file-00000000-0000-4000-8000-000000000004', 'source-00000000-0000-4000-8000-000000000001', 'manuals/stuck.txt', 'stuck.txt',
	 'text/plain', 'embedding', NULL, 'org-00000000-0000-4000-8000-000000000000', '2024-05-01T10:00:04Z'),
	('file-00000000-0000-4000-8000-000000000005', 'source-00000000-0000-4000-8000-000000000001', 'manuals/lost.txt', 'lost.txt',
	 'text/plain', 'error', 'File processing failed: TimeoutError', 'org-00000000-0000-4000-8000-000000000000', '2024-05-01T10:00:05Z');
INSERT INTO file_contents (id, file_id, text) VALUES
	('file_content-1', 'file-00000000-0000-4000-8000-000000000001', E'# Guide\n\nTurn the key.\n'),
	('file_content-2', 'file-00000000-0000-4000-8000-000000000002', E'# Guide, again\n'),
	('file_content-3', 'file-00000000-0000-4000-8000-000000000003', E'The report of 1843.\n');
INSERT INTO source_passages (id, text, metadata_, organization_id, file_id, source_id, file_name, created_at) VALUES
	('passage-s1', 'First half.', '{}', 'org-00000000-0000-4000-8000-000000000000', 'file-00000000-0000-4000-8000-000000000004',
	 'source-00000000-0000-4000-8000-000000000001', 'stuck.txt', '2024-05-01T10:00:05Z'),
	('passage-s2', 'Second half.', '{}', 'org-00000000-0000-4000-8000-000000000000', 'file-00000000-0000-4000-8000-000000000004',
	 'source-00000000-0000-4000-8000-000000000001', 'stuck.txt', '2024-05-01T10:00:06Z');

INSERT INTO source_passages (id, text, metadata_, organization_id, source_id, file_name) VALUES
	('passage-s3', 'Of no file.', '{}', 'org-00000000-0000-4000-8000-000000000000',
	 'source-00000000-0000-4000-8000-000000000001', 'guide.md');

INSERT INTO archives (id, name, organization_id, vector_db_provider, embedding_config, created_at) VALUES
	('archive-00000000-0000-4000-8000-000000000001', 'shared facts', 'org-00000000-0000-4000-8000-000000000000', 'NATIVE',
	 '{"embedding_model": "m", "embedding_dim": 3, "embedding_endpoint": "http://embed/v1/"}', '2024-05-01T10:00:00Z');
INSERT INTO archival_passages (id, text, embedding_config, metadata_, embedding, organization_id, archive_id, tags, created_at)
SELECT 'passage-00000000-0000-4000-8000-00000000000' || n, text,
       '{"embedding_model": "m", "embedding_dim": 3, "embedding_endpoint": "http://embed/v1/"}', '{"n": 1}',
       CASE WHEN vector <> '' THEN ('[' || vector || repeat(',0', 4093) || ']')::vector END,
       'org-00000000-0000-4000-8000-000000000000', 'archive-00000000-0000-4000-8000-000000000001', tags::json,
       '2024-05-01T10:00:00Z'::timestamptz + n * interval '1 day'
FROM (VALUES (1, 'The engine has a mill.', '3,0,4', '["engine"]'), (2, 'It has a store.', '', NULL),
             (3, repeat('A long tale of the engine and its cards. ', 500), '1,2,3', '[]'),
             (4, '   ', '1,0,0', '[]')) AS p (n, text, vector, tags);
INSERT INTO archival_passages (id, text, embedding_config, metadata_, embedding, organization_id, archive_id, created_at)
SELECT 'passage-00000000-0000-4000-8000-000000000005', 'Its vector is longer than its model says.',
       '{"embedding_model": "m", "embedding_dim": 3}', '{}', ('[1,2,3,4' || repeat(',0', 4092) || ']')::vector,
       'org-00000000-0000-4000-8000-000000000000', 'archive-00000000-0000-4000-8000-000000000001', '2024-05-09T10:00:00Z';
INSERT INTO passage_tags (id, tag, passage_id, archive_id, organization_id) VALUES
	('t1', 'engine', 'passage-00000000-0000-4000-8000-000000000001', 'archive-00000000-0000-4000-8000-000000000001',
	 'org-00000000-0000-4000-8000-000000000000'),
	('t2', 'mill', 'passage-00000000-0000-4000-8000-000000000001', 'archive-00000000-0000-4000-8000-000000000001',
	 'org-00000000-0000-4000-8000-000000000000');

INSERT INTO tools (id, name, description, source_type, source_code, json_schema, tags, tool_type, organization_id) VALUES
	('tool-00000000-0000-4000-8000-000000000001', 'roll_die', 'Rolls.', 'python', 'def roll_die(): pass',
	 '{"name": "roll_die", "description": "Rolls.", "parameters": {"type": "object", "properties": {}}}', '[]', 'custom',
	 'org-00000000-0000-4000-8000-000000000000'),
	('tool-00000000-0000-4000-8000-000000000002', 'conversation_search', '', 'python', NULL, '{}', '[]', 'letta_core',
	 'org-00000000-0000-4000-8000-000000000000'),
	('tool-00000000-0000-4000-8000-000000000003', 'send_message', '', 'python', NULL, '{}', '[]', 'letta_core',
	 'org-00000000-0000-4000-8000-000000000000'),
	('tool-00000000-0000-4000-8000-000000000004', 'web_lookup', 'Looks up.', 'json', NULL,
	 '{"name": "web_lookup", "description": "Looks up.", "parameters": {"type": "object", "properties": {}}}',
	 '["mcp:web"]', 'external_mcp', 'org-00000000-0000-4000-8000-000000000000');
INSERT INTO mcp_server (id, server_name, server_type, server_url, organization_id, token) VALUES
	('mcp_server-00000000-0000-4000-8000-000000000001', 'web', 'streamable_http', 'https://mcp.example.com/mcp',
	 'org-00000000-0000-4000-8000-000000000000', 'a token');

INSERT INTO agents (id, name, system, agent_type, organization_id, message_buffer_autoclear, message_ids, llm_config,
                    embedding_config, tool_rules, compaction_settings, timezone, max_files_open, per_file_view_window_char_limit, created_at) VALUES
	('agent-00000000-0000-4000-8000-000000000001', E'Ada\nLovelace', 'You are Ada.', 'memgpt_v2_agent',
	 'org-00000000-0000-4000-8000-000000000000', false,
	 '["message-00000000-0000-4000-8000-000000000001", "message-00000000-0000-4000-8000-000000000007",
	   "message-00000000-0000-4000-8000-000000000003", "message-00000000-0000-4000-8000-000000000008",
	   "message-00000000-0000-4000-8000-000000000009", "message-99999999-0000-4000-8000-000000000009"]',
	 '{"handle": "openai/gpt-4o", "model": "gpt-4o", "context_window": 32000, "temperature": 0.25, "max_tokens": 777, "reasoning_effort": "high", "verbosity": null, "enable_reasoner": true}', '{"handle": "ollama/m", "embedding_dim": 3}',
	 '[{"type": "exit_loop", "tool_name": "send_message"}, {"type": "exit_loop", "tool_name": "roll_die"}]',
	 '{"mode": "no such mode"}', 'Mars/Olympus', 0, -5, '2024-05-01T10:00:00Z'),
	('agent-00000000-0000-4000-8000-000000000002', NULL, NULL, NULL, 'org-11111111-1111-4111-8111-111111111111', true, NULL,
	 NULL, NULL, NULL, NULL, NULL, 3000, 50, '2024-05-01T10:00:00Z');
INSERT INTO agents (id, name, organization_id, message_buffer_autoclear, is_deleted) VALUES
	('agent-00000000-0000-4000-8000-000000000003', 'deleted', 'org-00000000-0000-4000-8000-000000000000', false, true);
INSERT INTO agents_tags VALUES ('agent-00000000-0000-4000-8000-000000000001', 'math');
INSERT INTO blocks_agents VALUES
	('agent-00000000-0000-4000-8000-000000000001', 'block-00000000-0000-4000-8000-000000000001', 'human'),
	('agent-00000000-0000-4000-8000-000000000001', 'block-00000000-0000-4000-8000-000000000002', 'my notes: été'),
	('agent-00000000-0000-4000-8000-000000000002', 'block-00000000-0000-4000-8000-000000000003', 'acme');
INSERT INTO sources_agents VALUES ('agent-00000000-0000-4000-8000-000000000001', 'source-00000000-0000-4000-8000-000000000001');
INSERT INTO archives_agents (agent_id, archive_id, is_owner) VALUES
	('agent-00000000-0000-4000-8000-000000000001', 'archive-00000000-0000-4000-8000-000000000001', true);
INSERT INTO tools_agents VALUES
	('agent-00000000-0000-4000-8000-000000000001', 'tool-00000000-0000-4000-8000-000000000001'),
	('agent-00000000-0000-4000-8000-000000000001', 'tool-00000000-0000-4000-8000-000000000002'),
	('agent-00000000-0000-4000-8000-000000000001', 'tool-00000000-0000-4000-8000-000000000003'),
	('agent-00000000-0000-4000-8000-000000000001', 'tool-00000000-0000-4000-8000-000000000004');
INSERT INTO files_agents (id, file_id, agent_id, is_open, visible_content, last_accessed_at, organization_id, file_name, source_id, start_line) VALUES
	('file_agent-1', 'file-00000000-0000-4000-8000-000000000001', 'agent-00000000-0000-4000-8000-000000000001', true, '1: # Guide',
	 '2024-05-02T10:00:00Z', 'org-00000000-0000-4000-8000-000000000000', 'manuals/guide.md', 'source-00000000-0000-4000-8000-000000000001', 1),
	('file_agent-2', 'file-00000000-0000-4000-8000-000000000002', 'agent-00000000-0000-4000-8000-000000000001', false, NULL,
	 '2024-05-01T10:00:00Z', 'org-00000000-0000-4000-8000-000000000000', 'guide.md', 'source-00000000-0000-4000-8000-000000000001', NULL);

INSERT INTO conversations (id, agent_id, summary, organization_id, created_at) VALUES
	('conv-00000000-0000-4000-8000-000000000001', 'agent-00000000-0000-4000-8000-000000000001', 'About cards',
	 'org-00000000-0000-4000-8000-000000000000', '2024-05-03T10:00:00Z');
INSERT INTO conversations (id, agent_id, organization_id, is_deleted) VALUES
	('conv-00000000-0000-4000-8000-000000000002', 'agent-00000000-0000-4000-8000-000000000001',
	 'org-00000000-0000-4000-8000-000000000000', true);
INSERT INTO messages (id, agent_id, role, text, content, tool_calls, tool_call_id, tool_returns, otid, created_at, organization_id, conversation_id, sequence_id, approve, approval_request_id, approvals)
SELECT 'message-00000000-0000-4000-8000-0000000000' || id, 'agent-00000000-0000-4000-8000-000000000001', role, text, content::json,
       coalesce(calls, '[]')::json, call_id, returns::json, otid, at::timestamptz, 'org-00000000-0000-4000-8000-000000000000', conversation, seq,
       approve, asked, approvals::json
FROM (VALUES
	('01', 'system', NULL, '[{"type": "text", "text": "You are Ada. <memory/>"}]', NULL, NULL, NULL, NULL, '2024-05-01T10:00:00Z', NULL, 1, NULL::boolean, NULL, NULL),
	('02', 'user', 'hello from an older server', NULL, NULL, NULL, NULL, 'o1', '2024-05-01T10:00:05Z', NULL, 2, NULL, NULL, NULL),
	('03', 'user', NULL, '[{"type": "text", "text": "nul: \u0000 and half an emoji: \ud83d"}]', NULL, NULL, NULL, 'o1', '2024-05-01T09:00:00Z', NULL, 3, NULL, NULL, NULL),
	('04', 'assistant', NULL, '[{"type": "reasoning", "is_native": true, "reasoning": "think"}, {"type": "text", "text": "A die will do."}]',
	 '[{"id": "c1", "type": "function", "function": {"name": "roll_die", "arguments": "{\"inner_thoughts\": \"Six.\", \"sides\": 6}"}}]', NULL, NULL, NULL, '2024-05-01T10:00:06Z', NULL, 4, NULL, NULL, NULL),
	('05', 'tool', NULL, NULL, NULL, 'c1', '[{"tool_call_id": "c1", "status": "success", "func_response": "{\n  \"status\": \"OK\",\n  \"message\": {\"rolled\": [4]},\n  \"time\": \"2024-05-01 12:00:07 PM CEST+0200\"\n}"}]', NULL, '2024-05-01T10:00:07Z', NULL, 5, NULL, NULL, NULL),
	('06', 'assistant', NULL, '{"no": "list"}', NULL, NULL, NULL, NULL, NULL, NULL, 6, NULL, NULL, NULL),
	('07', 'summary', NULL, '[{"type": "text", "text": "{\"type\": \"system_alert\", \"message\": \"They rolled a 4.\"}"}]', NULL, NULL, NULL, NULL, '2024-05-01T10:01:00Z', NULL, 8, NULL, NULL, NULL),
	('08', 'approval', NULL, '[]', '[{"id": "c2", "type": "function", "function": {"name": "roll_die", "arguments": "{}"}}]', NULL, NULL, NULL, '2024-05-01T10:02:00Z', NULL, 9, NULL, NULL, NULL),
	('10', 'approval', NULL, NULL, NULL, NULL, NULL, NULL, '2024-05-01T10:02:30Z', NULL, 10, true, 'message-00000000-0000-4000-8000-000000000008', NULL),
	('09', 'tool', NULL, NULL, NULL, 'c2', '[{"tool_call_id": "c2", "status": "success", "func_response": "{\"status\": \"Failed\", \"message\": \"it broke\", \"time\": \"2024-05-01 10:03:00 AM UTC+0000\"}"}]', NULL, '2024-05-01T10:03:00Z', NULL, 11, NULL, NULL, NULL),
	('11', 'user', NULL, '[{"type": "text", "text": "of cards"}]', NULL, NULL, NULL, NULL, '2999-05-01T10:04:00Z', 'conv-00000000-0000-4000-8000-000000000001', 7, NULL, NULL, NULL),
	('12', 'user', NULL, '[{"type": "text", "text": "of a deleted conversation"}]', NULL, NULL, NULL, NULL, '2024-05-01T10:05:00Z', 'conv-00000000-0000-4000-8000-000000000002', 12, NULL, NULL, NULL)
) AS m (id, role, text, content, calls, call_id, returns, otid, at, conversation, seq, approve, asked, approvals);
INSERT INTO conversation_messages (id, conversation_id, agent_id, message_id, position, in_context, organization_id) VALUES
	('cm-1', 'conv-00000000-0000-4000-8000-000000000001', 'agent-00000000-0000-4000-8000-000000000001',
	 'message-00000000-0000-4000-8000-000000000011', 0, true, 'org-00000000-0000-4000-8000-000000000000');

INSERT INTO identities (id, identifier_key, name, identity_type, organization_id, properties) VALUES
	('identity-00000000-0000-4000-8000-000000000001', 'ada', 'Ada', 'person', 'org-00000000-0000-4000-8000-000000000000',
	 '[{"key": "born", "value": 1815, "type": "number"}]');
INSERT INTO identities_agents VALUES
	('identity-00000000-0000-4000-8000-000000000001', 'agent-00000000-0000-4000-8000-000000000001');
INSERT INTO identities_blocks VALUES
	('identity-00000000-0000-4000-8000-000000000001', 'block-00000000-0000-4000-8000-000000000004');
INSERT INTO groups (id, description, manager_type, organization_id, agent_ids) VALUES
	('group-1', 'g', 'round_robin', 'org-00000000-0000-4000-8000-000000000000', '[]');
