-- Who is signed in to the console, and until when. A browser has a secret of its own in place of its person's key, and
-- the table has the hash of the secret. A session ends with its key.
CREATE TABLE console_sessions (
	sha256     bytea       PRIMARY KEY,
	id         text        NOT NULL DEFAULT 'session-' || gen_random_uuid(),
	key_id     text        NOT NULL REFERENCES api_keys (id) ON DELETE CASCADE,
	created_at timestamptz NOT NULL DEFAULT now(),
	expires_at timestamptz NOT NULL,
	CONSTRAINT console_sessions_id_key UNIQUE (id)
);
CREATE INDEX console_sessions_key ON console_sessions (key_id, created_at);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
