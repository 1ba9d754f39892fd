-- A provider refused a prompt with the message, which left the view for that: {"status", "message", "trial"}. The message stays in the log.
-- A trial is a number of its conversation's refusals: the provider is asked without the messages of the trial, which come back if it
-- refuses that prompt, too.
ALTER TABLE messages ADD COLUMN refused jsonb;

-- The last refusal of a prompt of the conversation.
ALTER TABLE conversations ADD COLUMN refusal jsonb;

-- The status and the words of the provider for which a run failed.
ALTER TABLE runs ADD COLUMN error_status integer, ADD COLUMN error_detail text;

-- Runs that tried a failed request of other otids again.
CREATE INDEX runs_retried ON runs (org, conversation_key) WHERE request ? 'retried';

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
