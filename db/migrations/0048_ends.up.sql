-- A sub-agent is cancelled on request, and when the conversation that it works for or its own is deleted or reset. Its
-- record remains until its parent is deleted: agent_key and conversation_key are null when its own agent was.
ALTER TABLE children
	ALTER COLUMN agent_key DROP NOT NULL,
	ALTER COLUMN conversation_key DROP NOT NULL,
	DROP CONSTRAINT children_status,
	ADD CONSTRAINT children_status CHECK (status IN ('working', 'returned', 'failed', 'cancelled')),
	DROP CONSTRAINT children_own_conversation,
	ADD CONSTRAINT children_own_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE SET NULL (agent_key, conversation_key);
CREATE INDEX children_working_for ON children (org, parent_conversation) WHERE status = 'working';

-- Cancels the sub-agents of the keys that work, those that work for them, and the runs of all.
CREATE FUNCTION cancel_children(of_org integer, keys bigint[], why text) RETURNS void LANGUAGE sql AS $$
	WITH RECURSIVE ended AS (
		SELECT key, conversation_key FROM children WHERE org = of_org AND key = ANY (keys) AND status = 'working'
		UNION
		SELECT k.key, k.conversation_key
		FROM ended e JOIN children k ON k.org = of_org AND k.parent_conversation = e.conversation_key AND k.status = 'working'
	), marked AS (
		UPDATE children SET status = 'cancelled', result = why, returned_at = now()
		WHERE org = of_org AND key IN (SELECT key FROM ended) AND status = 'working'
		RETURNING conversation_key
	)
	UPDATE runs SET cancelled_at = coalesce(cancelled_at, now())
	WHERE org = of_org AND status = 'running' AND conversation_key IN (SELECT conversation_key FROM marked)
$$;

CREATE FUNCTION cancel_children_of_hidden() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM cancel_children(NEW.org, array_agg(key), 'The conversation that it worked for was deleted or reset.')
	FROM children WHERE org = NEW.org AND parent_conversation = NEW.key AND status = 'working';
	PERFORM cancel_children(NEW.org, array_agg(key), 'Its own conversation or agent was deleted.')
	FROM children WHERE org = NEW.org AND conversation_key = NEW.key AND status = 'working';
	RETURN NULL;
END $$;
CREATE TRIGGER conversations_cancel_children AFTER UPDATE OF deleted_at ON conversations
	FOR EACH ROW WHEN (OLD.deleted_at IS NULL AND NEW.deleted_at IS NOT NULL)
	EXECUTE FUNCTION cancel_children_of_hidden();

UPDATE children k
SET status = 'cancelled', result = 'Its conversation, or the one that it worked for, was deleted or reset.', returned_at = now()
WHERE status = 'working' AND EXISTS (
	SELECT FROM conversations c
	WHERE c.org = k.org AND c.key IN (k.parent_conversation, k.conversation_key) AND c.deleted_at IS NOT NULL);

-- A silent turn whose view has ended with a compaction has ended, too.
CREATE FUNCTION end_flushes_of_view() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	UPDATE flushes
	SET status = CASE WHEN deadline <= now() THEN 'expired' ELSE 'overtaken' END, ended_at = least(deadline, now())
	WHERE org = NEW.org AND conversation_key = NEW.key AND view < NEW.frame AND status = 'open';
	RETURN NULL;
END $$;
CREATE TRIGGER conversations_end_flushes AFTER UPDATE OF frame ON conversations
	FOR EACH ROW WHEN (OLD.frame <> NEW.frame) EXECUTE FUNCTION end_flushes_of_view();

UPDATE flushes f
SET status = 'overtaken', ended_at = least(deadline, now())
FROM conversations c
WHERE c.org = f.org AND c.key = f.conversation_key AND c.frame <> f.view AND f.status = 'open';

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
