-- Messages of a time, and the newest ones.
CREATE INDEX messages_time ON messages (agent_key, created_at, key);

-- What endpoints said, with their hosts and settings, is the operator's alone. Errors that earlier versions stored say no more than that
-- there was one.
UPDATE conversations SET embed_error = 'the endpoint fails' WHERE embed_error IS NOT NULL;
UPDATE archives SET embed_error = 'the endpoint fails' WHERE embed_error IS NOT NULL;
UPDATE embed_batches SET error = 'the endpoint fails' WHERE error IS NOT NULL;
UPDATE embed_refusals SET reason = 'for a reason that is not kept';
UPDATE unembedded_passages SET refused = 'for a reason that is not kept' WHERE refused IS NOT NULL;
UPDATE compactions SET why = 'the language model fails' WHERE why ~ 'provider at | at \S+ did not answer|LOCI_|//|window: ';

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
