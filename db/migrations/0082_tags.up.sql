-- The tags of passages, each with the archive's key, for an index of them: a tag that many archives have is found in one.
CREATE FUNCTION owned_tags(owner bigint, tags text[]) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN (SELECT array_agg(owner::text || ' ' || tag) FROM unnest(tags) AS tag);
CREATE INDEX passages_tags ON passages USING gin (owned_tags(archive_key, tags)) WITH (fastupdate = off)
	WHERE tags <> '{}';

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
