-- When passages hold: from valid_from on, and before valid_until; NULL is no bound. superseded_by is the passage of the same archive
-- that took the place of one that ended.
ALTER TABLE passages
	ADD COLUMN valid_from    timestamptz,
	ADD COLUMN valid_until   timestamptz,
	ADD COLUMN superseded_by bigint,
	ADD CONSTRAINT passages_validity CHECK (valid_until > valid_from),
	ADD CONSTRAINT passages_superseded_ended CHECK (superseded_by IS NULL OR valid_until IS NOT NULL),
	ADD CONSTRAINT passages_superseded_by_another CHECK (superseded_by <> key),
	ADD CONSTRAINT passages_superseded_by FOREIGN KEY (org, archive_key, superseded_by)
		REFERENCES passages (org, archive_key, key) ON DELETE SET NULL (superseded_by),
	DROP CONSTRAINT passages_text_key,
	-- An archive has each text once that has no end: what ended may be so again.
	ADD CONSTRAINT passages_text_key UNIQUE NULLS NOT DISTINCT (org, archive_key, sha256, valid_until);
CREATE INDEX passages_superseded ON passages (org, archive_key, superseded_by) WHERE superseded_by IS NOT NULL;

-- Vectors repeat what searches filter by.
ALTER TABLE passage_vectors
	ADD COLUMN valid_from  timestamptz,
	ADD COLUMN valid_until timestamptz;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
