-- The least and the greatest key of a file's chunks; null while it has none. A search of some files passes over the other
-- rows of the index of words by them.
ALTER TABLE files ADD COLUMN first_chunk bigint, ADD COLUMN last_chunk bigint;
UPDATE files f SET first_chunk = c.first, last_chunk = c.last
FROM (SELECT org, file_key, min(key) AS first, max(key) AS last FROM chunks GROUP BY org, file_key) c
WHERE c.org = f.org AND c.file_key = f.key;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
