-- When it was last tried whether the database stores changes, by what tried it: the newest time of each.
CREATE TABLE probes (
	name text        PRIMARY KEY,
	at   timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 10); -- a row is changed every few seconds, in its page

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
