-- Where something stood that was deleted: a caller who pages through a list goes on from there. Kept for a day.
CREATE TABLE deleted_places (
	id         text        PRIMARY KEY,
	org        integer     NOT NULL,
	created_at timestamptz NOT NULL,
	key        bigint      NOT NULL,
	deleted_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX deleted_places_time ON deleted_places (deleted_at);

CREATE FUNCTION keep_deleted_places() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO deleted_places (id, org, created_at, key)
	SELECT id, org, created_at, key FROM gone
	ON CONFLICT (id) DO NOTHING;
	RETURN NULL;
END $$;
CREATE TRIGGER files_keep_place AFTER DELETE ON files
	REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION keep_deleted_places();
CREATE TRIGGER agents_keep_place AFTER DELETE ON agents
	REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION keep_deleted_places();

-- A deleted folder belongs to no organization, and so to no statement, while its rows are being cleared away.
ALTER TABLE folders ALTER COLUMN org DROP NOT NULL;

-- A listing by name reads a page of it.
CREATE INDEX files_listing ON files (folder_key, name COLLATE "C", key) WHERE replaces IS NULL;

-- What a folder holds is counted and summed up without its rows.
CREATE INDEX files_sizes ON files (folder_key, size_bytes) WHERE replaces IS NULL;

-- A page of passages goes on from one of them.
CREATE INDEX chunks_id ON chunks (id);

-- A space that no server has used for long is cleared away.
ALTER TABLE embedding_spaces ADD COLUMN used_at timestamptz NOT NULL DEFAULT now();

-- What a space holds is counted, and cleared away, by the space.
CREATE INDEX chunk_vectors_scope ON chunk_vectors (space_id, folder_key);
DROP INDEX chunk_vectors_folder;
CREATE INDEX embed_batches_space ON embed_batches (space_id);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
