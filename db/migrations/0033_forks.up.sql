-- Where a conversation was copied from: its messages up to forked_to are copies of those at the same positions.
ALTER TABLE conversations
	ADD COLUMN forked_from bigint,
	ADD COLUMN forked_to   integer NOT NULL DEFAULT 0,
	ADD CONSTRAINT conversations_forked_from FOREIGN KEY (org, agent_key, forked_from)
		REFERENCES conversations (org, agent_key, key) ON DELETE SET NULL (forked_from),
	ADD CONSTRAINT conversations_forked_to CHECK (forked_to >= 0);
CREATE INDEX conversations_forks ON conversations (org, agent_key, forked_from) WHERE forked_from IS NOT NULL;

-- The position of a conversation's last message when it was compacted, before its summary.
ALTER TABLE compactions ADD COLUMN after_position integer;
UPDATE compactions SET after_position = summary_position - 1 WHERE summary_position IS NOT NULL;
UPDATE compactions k
SET after_position = placed.position
FROM (
	SELECT org, key, max(position) OVER (PARTITION BY org, conversation_key ORDER BY seq) AS position
	FROM (
		SELECT m.org, m.conversation_key, m.seq, m.position, NULL::bigint AS key
		FROM messages m
		UNION ALL
		SELECT k.org, k.conversation_key, e.seq, NULL, k.key
		FROM events e
		JOIN compactions k ON k.org = e.org AND k.id = e.ref_id
		WHERE e.type = 'compaction' AND k.after_position IS NULL
	) in_order
) placed
WHERE k.org = placed.org AND k.key = placed.key AND placed.position IS NOT NULL;
UPDATE compactions SET after_position = 0 WHERE after_position IS NULL;
ALTER TABLE compactions ALTER COLUMN after_position SET NOT NULL;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
