-- Programs of the operator read pages and convert old formats. read_by says what they read of a file; NULL means
-- nothing. While a file is parsed, pages_read of its pages_found pages are read.
ALTER TABLE files ADD COLUMN read_by jsonb;

ALTER TABLE files ADD COLUMN pages_read integer;

ALTER TABLE files ADD COLUMN pages_found integer;

-- Pages that OCR read of a file that is being parsed, so that another attempt goes on behind them. They are deleted once
-- the file has its text.
CREATE TABLE read_pages (
	org      integer NOT NULL,
	file_key bigint  NOT NULL,
	page     integer NOT NULL,
	text     text    NOT NULL,
	PRIMARY KEY (org, file_key, page),
	CONSTRAINT read_pages_file_key_fkey FOREIGN KEY (org, file_key)
		REFERENCES files (org, key) ON DELETE CASCADE
);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
