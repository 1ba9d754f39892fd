-- The space that an archive's passages have their vectors in, or wait for them; none before there was an embeddings endpoint. embed_error says
-- why they wait.
ALTER TABLE archives
	ADD COLUMN embedded_space smallint,
	ADD COLUMN embed_error    text;

-- Passages that lack their vector in their archive's space. One that the endpoint refused stays, with the reason, until its text is another
-- or the space is.
CREATE TABLE unembedded_passages (
	passage_key bigint  PRIMARY KEY REFERENCES passages (key) ON DELETE CASCADE,
	org         integer NOT NULL,
	archive_key bigint  NOT NULL,
	refused     text
);
CREATE INDEX unembedded_passages_waiting ON unembedded_passages (archive_key, passage_key) WHERE refused IS NULL;
CREATE INDEX unembedded_passages_refused ON unembedded_passages (archive_key) WHERE refused IS NOT NULL;

-- Vectors as messages have them: inline in a narrow row, with what searches filter by.
CREATE TABLE passage_vectors (
	space_id    smallint    NOT NULL REFERENCES embedding_spaces (id) ON DELETE CASCADE,
	passage_key bigint      NOT NULL REFERENCES passages (key) ON DELETE CASCADE,
	org         integer     NOT NULL,
	archive_key bigint      NOT NULL,
	tags        text[]      NOT NULL,
	happened_at timestamptz NOT NULL,
	embedding   halfvec     NOT NULL,
	PRIMARY KEY (passage_key, space_id)
) WITH (toast_tuple_target = 8160);
CREATE INDEX passage_vectors_scope ON passage_vectors (space_id, archive_key);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
