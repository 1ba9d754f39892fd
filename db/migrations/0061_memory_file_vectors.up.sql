-- The space that the files of a tree have their vectors in, or wait for; none before there was an embeddings endpoint. embed_error
-- says why they wait.
ALTER TABLE memory_trees
	ADD COLUMN embedded_space smallint,
	ADD COLUMN embed_error    text;

-- A file waits until each chunk of its text has a vector. refused_chunks are those that the endpoint refused.
ALTER TABLE memory_files
	ADD COLUMN unembedded     boolean  NOT NULL DEFAULT true,
	ADD COLUMN refused_chunks bigint[] NOT NULL DEFAULT '{}';
CREATE INDEX memory_files_unembedded ON memory_files (org, tree_key) WHERE unembedded AND deleted_at IS NULL;

-- Vectors of the present texts of files that are not deleted. A chunk is named by the first 8 bytes of the SHA-256 of what is
-- embedded of it: its path, heading and text.
CREATE TABLE memory_file_vectors (
	org        integer  NOT NULL,
	tree_key   bigint   NOT NULL,
	file_key   bigint   NOT NULL,
	space_id   smallint NOT NULL,
	chunk      bigint   NOT NULL,
	first_line integer  NOT NULL,
	last_line  integer  NOT NULL,
	embedding  halfvec  NOT NULL,
	PRIMARY KEY (org, tree_key, file_key, space_id, chunk),
	CONSTRAINT memory_file_vectors_file FOREIGN KEY (org, tree_key, file_key)
		REFERENCES memory_files (org, tree_key, key) ON DELETE CASCADE,
	CONSTRAINT memory_file_vectors_space FOREIGN KEY (space_id) REFERENCES embedding_spaces (id) ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
CREATE INDEX memory_file_vectors_of_space ON memory_file_vectors (org, space_id);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
