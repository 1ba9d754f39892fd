-- The values in the metadata of passages, by which filters find passages that are few.

-- A path is the hash of the names that lead to a value. Different paths may have one hash.
CREATE FUNCTION metadata_path(names text[]) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN hashtextextended(array_to_string(names, chr(31)), 0);

-- The values of metadata, each with its path of at most 10 names: a text, of which it has the first 200 characters; or a
-- number, as near as a double is. A text in ISO 8601 is a time, too: without an offset in UTC. true and false are texts,
-- objects and lists are empty ones, and null is no value. The elements of a list have the path of the list with the name
-- chr(29); a text that was cut has an empty one beside it, with the name chr(30). Metadata with more than 100 values has a
-- value of the path 0 beside the first 100.
CREATE FUNCTION metadata_values(metadata jsonb)
	RETURNS TABLE (n smallint, path bigint, text text, number double precision, moment timestamptz)
	LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
	WITH RECURSIVE inside (names, value) AS (
		SELECT '{}'::text[], metadata
		UNION ALL
		SELECT names || m.key, m.value
		FROM inside CROSS JOIN jsonb_each(CASE jsonb_typeof(value) WHEN 'object' THEN value ELSE '{}' END) AS m
		WHERE cardinality(names) < 10
	), listed AS (
		SELECT names, value FROM inside WHERE names <> '{}' AND jsonb_typeof(value) <> 'null'
		UNION ALL
		SELECT names || chr(29), e.value
		FROM inside
		CROSS JOIN jsonb_array_elements(CASE jsonb_typeof(inside.value) WHEN 'array' THEN inside.value ELSE '[]' END) AS e
		WHERE names <> '{}' AND jsonb_typeof(e.value) IN ('string', 'number', 'boolean')
		UNION ALL
		SELECT names || chr(30), '[]' FROM inside WHERE jsonb_typeof(value) = 'string' AND length(value #>> '{}') > 200
	), counted AS (
		SELECT row_number() OVER (ORDER BY names) AS n, names, value, jsonb_typeof(value) AS kind FROM listed LIMIT 101
	), typed AS (
		SELECT n, names, kind, CASE kind WHEN 'number' THEN NULL WHEN 'array' THEN '' WHEN 'object' THEN ''
			ELSE left(value #>> '{}', 200) END AS text, CASE kind WHEN 'number' THEN (value #>> '{}')::numeric END AS number
		FROM counted
	)
	SELECT n::smallint, CASE WHEN n > 100 THEN 0 ELSE metadata_path(names) END, CASE WHEN n > 100 THEN '' ELSE text END,
		CASE WHEN n > 100 THEN NULL WHEN abs(number) > 1e300 THEN sign(number)::double precision * 'Infinity'
			WHEN abs(number) < 1e-300 THEN 0 ELSE number::double precision END,
		CASE WHEN n <= 100 AND kind = 'string' AND text ~ '^\s*\d{4}-\d\d-\d\d' THEN written_time(text, 'UTC') END
	FROM typed
	$$;

-- The parts of three characters of a text, each hashed with who owns it and with its path.
CREATE FUNCTION value_grams(owner bigint, path bigint, text text) RETURNS bigint[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN (
		SELECT array_agg(DISTINCT hashtextextended(substr(text, i, 3), owner # path))
		FROM generate_series(1, length(text) - 2) AS i
	);

CREATE TABLE passage_values (
	org         integer  NOT NULL,
	passage_key bigint   NOT NULL,
	n           smallint NOT NULL,
	archive_key bigint   NOT NULL,
	path        bigint   NOT NULL,
	text        text COLLATE "C",
	number      double precision,
	moment      timestamptz,
	PRIMARY KEY (org, passage_key, n),
	CONSTRAINT passage_values_passage FOREIGN KEY (org, archive_key, passage_key)
		REFERENCES passages (org, archive_key, key) ON DELETE CASCADE
);
INSERT INTO passage_values (org, passage_key, n, archive_key, path, text, number, moment)
SELECT p.org, p.key, v.n, p.archive_key, v.path, v.text, v.number, v.moment
FROM passages p CROSS JOIN LATERAL metadata_values(p.metadata) v
WHERE p.metadata <> '{}';
CREATE INDEX passage_values_text ON passage_values (org, archive_key, path, text, passage_key) WHERE text IS NOT NULL;
CREATE INDEX passage_values_number ON passage_values (org, archive_key, path, number, passage_key)
	WHERE number IS NOT NULL;
CREATE INDEX passage_values_moment ON passage_values (org, archive_key, path, moment, passage_key)
	WHERE moment IS NOT NULL;
CREATE INDEX passage_values_grams ON passage_values USING gin (value_grams(archive_key, path, text))
	WHERE length(text) > 2;

DROP INDEX passages_metadata;
DROP FUNCTION owned_metadata(bigint, jsonb);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
