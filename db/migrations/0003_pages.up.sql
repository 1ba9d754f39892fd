-- Where the pages of a file begin: the first line of each, from 1. NULL where its format has no pages.
ALTER TABLE files
	ADD COLUMN pages integer[],
	ADD CONSTRAINT files_pages CHECK (cardinality(pages) > 0);

ALTER TABLE chunks
	ADD COLUMN first_page integer,
	ADD COLUMN last_page integer,
	ADD CONSTRAINT chunks_pages CHECK (first_page >= 1 AND last_page >= first_page);

UPDATE schema_migrations SET dirty = false;
