-- The hashes of revoked keys: a key in the server's settings that was revoked stays so when the server starts again.
CREATE TABLE revoked_keys (
	sha256     bytea       PRIMARY KEY,
	revoked_at timestamptz NOT NULL DEFAULT now()
);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
