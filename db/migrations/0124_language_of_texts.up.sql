-- The language of a passage and of a file, in ISO 639-1, and whether its writer chose it. NULL: it is not known, or an
-- earlier version of the program stored the text.
ALTER TABLE passages ADD COLUMN language text;
ALTER TABLE passages ADD COLUMN language_given boolean NOT NULL DEFAULT false;
ALTER TABLE passages ADD CONSTRAINT passages_language CHECK (octet_length(language) = 2);
ALTER TABLE files ADD COLUMN language text;
ALTER TABLE files ADD COLUMN language_given boolean NOT NULL DEFAULT false;
ALTER TABLE files ADD CONSTRAINT files_language CHECK (octet_length(language) = 2);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
