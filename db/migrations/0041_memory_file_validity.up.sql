-- When memory files hold, as passages; superseded_by is a file of the same tree.
ALTER TABLE memory_files
	ADD COLUMN valid_from    timestamptz,
	ADD COLUMN valid_until   timestamptz,
	ADD COLUMN superseded_by bigint,
	ADD CONSTRAINT memory_files_validity CHECK (valid_until > valid_from),
	ADD CONSTRAINT memory_files_superseded_ended CHECK (superseded_by IS NULL OR valid_until IS NOT NULL),
	ADD CONSTRAINT memory_files_superseded_by_another CHECK (superseded_by <> key),
	ADD CONSTRAINT memory_files_tree_key UNIQUE (org, tree_key, key);
ALTER TABLE memory_files
	ADD CONSTRAINT memory_files_superseded_by FOREIGN KEY (org, tree_key, superseded_by)
		REFERENCES memory_files (org, tree_key, key) ON DELETE SET NULL (superseded_by);
DROP INDEX memory_files_of_tree;
CREATE INDEX memory_files_superseded ON memory_files (org, tree_key, superseded_by) WHERE superseded_by IS NOT NULL;

ALTER TABLE memory_file_versions
	ADD COLUMN valid_from  timestamptz,
	ADD COLUMN valid_until timestamptz,
	DROP CONSTRAINT memory_file_versions_change,
	ADD CONSTRAINT memory_file_versions_change
		CHECK (change IN ('created', 'modified', 'renamed', 'deleted', 'restored', 'redacted', 'validity'));

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
