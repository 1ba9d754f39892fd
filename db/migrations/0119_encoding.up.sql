-- The encoding of a plain text: the one that its uploader chose, and how likely charset, the one in which it was read, is
-- right (from 0 to 1). NULL: none was chosen; the file has no encoding, or an earlier version of the program read it.
ALTER TABLE files ADD COLUMN encoding text;
ALTER TABLE files ADD COLUMN charset_sure real;
ALTER TABLE files ADD CONSTRAINT files_encoding CHECK (octet_length(encoding) <= 100);
ALTER TABLE files ADD CONSTRAINT files_charset_sure CHECK (charset_sure BETWEEN 0 AND 1);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
