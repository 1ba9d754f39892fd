-- How the newest run of an agent that has ended did so, and when the newest one of a conversation did.
ALTER TABLE agents
	ADD COLUMN last_run_completion  timestamptz,
	ADD COLUMN last_run_duration_ms bigint,
	ADD COLUMN last_stop_reason     text;
ALTER TABLE conversations ADD COLUMN last_run_completion timestamptz;

UPDATE agents a
SET last_run_completion = r.completed_at, last_stop_reason = r.stop_reason,
    last_run_duration_ms = round(extract(epoch FROM r.completed_at - r.created_at) * 1000)
FROM (
	SELECT DISTINCT ON (org, agent_key) org, agent_key, created_at, completed_at, stop_reason
	FROM runs WHERE completed_at IS NOT NULL
	ORDER BY org, agent_key, completed_at DESC, key DESC
) r
WHERE a.org = r.org AND a.key = r.agent_key;
UPDATE conversations c
SET last_run_completion = r.completed_at
FROM (
	SELECT org, conversation_key, max(completed_at) AS completed_at FROM runs GROUP BY org, conversation_key
) r
WHERE c.org = r.org AND c.key = r.conversation_key;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
