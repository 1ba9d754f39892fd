-- What filters of searches need.

-- The time that a text of metadata in ISO 8601 names: a date, or a date with a time to the minute or finer. Without an
-- offset it is in a zone. A date is the first moment of its day. It is NULL for any other text, and raises no error.
CREATE FUNCTION written_time(written text, zone text) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN (
		SELECT CASE
			WHEN extract(day FROM day) <> parts[3]::integer THEN NULL
			WHEN parts[8] IS NULL THEN (day + spent) AT TIME ZONE zone
			WHEN upper(parts[8]) = 'Z' THEN (day + spent) AT TIME ZONE 'UTC'
			ELSE (day + spent) AT TIME ZONE 'UTC' - (CASE WHEN parts[8] LIKE '-%' THEN -1 ELSE 1 END) *
				make_interval(hours => substr(parts[8], 2, 2)::integer,
				              mins => coalesce(nullif(right(replace(parts[8], ':', ''), -3), ''), '0')::integer)
		END
		FROM (
			SELECT parts, make_date(parts[1]::integer, parts[2]::integer, 1) + (parts[3]::integer - 1) AS day,
			       make_interval(hours => coalesce(parts[4], '0')::integer, mins => coalesce(parts[5], '0')::integer,
			                     secs => (coalesce(parts[6], '0') || '.' || coalesce(parts[7], '0'))::double precision) AS spent
			FROM (
				SELECT regexp_match(written, '^\s*(?!0000)(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])' ||
					'(?:[Tt ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d{1,9}))?)?' ||
					'(Z|z|[+-][01]\d(?::?[0-5]\d)?)?)?\s*$') AS parts
			) matched
			WHERE parts IS NOT NULL
		) read
	);

-- The metadata of passages, each below its archive's key, for an index of them.
CREATE FUNCTION owned_metadata(owner bigint, metadata jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN jsonb_build_object(owner::text, metadata);
CREATE INDEX passages_metadata ON passages USING gin (owned_metadata(archive_key, metadata) jsonb_path_ops)
	WITH (fastupdate=off) WHERE metadata <> '{}';

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
