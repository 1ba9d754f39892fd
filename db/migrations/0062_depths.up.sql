-- How deep sub-agents are that work there: 0 is no sub-agent. A copy of a sub-agent's conversation is as deep, also when the
-- sub-agent's row is deleted.
ALTER TABLE agents ADD COLUMN depth integer NOT NULL DEFAULT 0;
ALTER TABLE agents ADD CONSTRAINT agents_depth CHECK (depth >= 0) NOT VALID;
ALTER TABLE conversations ADD COLUMN depth integer NOT NULL DEFAULT 0;
ALTER TABLE conversations ADD CONSTRAINT conversations_depth CHECK (depth >= 0) NOT VALID;
UPDATE agents a SET depth = k.depth
FROM children k WHERE k.org = a.org AND k.agent_key = a.key AND k.mode <> 'fork';
UPDATE conversations c SET depth = k.depth
FROM children k WHERE k.org = c.org AND k.conversation_key = c.key AND k.mode = 'fork';
WITH RECURSIVE copies AS (
	SELECT org, key, depth FROM conversations WHERE depth > 0
	UNION ALL
	SELECT c.org, c.key, copies.depth
	FROM copies JOIN conversations c ON c.org = copies.org AND c.forked_from = copies.key
	WHERE c.depth = 0
)
UPDATE conversations c SET depth = copies.depth
FROM copies WHERE copies.org = c.org AND copies.key = c.key AND c.depth = 0;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
