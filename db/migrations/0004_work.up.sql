-- A file that waits to be parsed has its turn: where in the virtual time of its queue the folder's next one begins. Large files wait in a
-- queue of their own.
ALTER TABLE files
	ADD COLUMN turn      timestamptz,
	ADD COLUMN cancelled boolean NOT NULL DEFAULT false;
CREATE INDEX files_turn ON files (folder_key, (size_bytes > 1048576), turn) WHERE turn IS NOT NULL;

-- A batch whose job is queued has its turn too; the others of its file follow as these are done.
ALTER TABLE embed_batches
	ADD COLUMN folder_key bigint,
	ADD COLUMN turn       timestamptz;
UPDATE embed_batches b SET folder_key = f.folder_key FROM files f WHERE f.key = b.file_key;
ALTER TABLE embed_batches ALTER COLUMN folder_key SET NOT NULL;
CREATE INDEX embed_batches_turn ON embed_batches (folder_key, space_id, turn) WHERE turn IS NOT NULL;

-- Chunks that the endpoint of a space will not embed: they are found by their words.
CREATE TABLE embed_refusals (
	file_key bigint   NOT NULL REFERENCES files (key) ON DELETE CASCADE,
	space_id smallint NOT NULL REFERENCES embedding_spaces (id) ON DELETE CASCADE,
	org      integer  NOT NULL,
	chunks   integer  NOT NULL,
	reason   text     NOT NULL,
	PRIMARY KEY (file_key, space_id)
);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
