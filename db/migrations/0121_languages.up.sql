-- Words have the stems of their text's language, so rows that were weighed before are weighed again, in the background.
ALTER TABLE chunks ALTER COLUMN lex_version SET DEFAULT 4;

ALTER TABLE messages ALTER COLUMN lex_version SET DEFAULT 4;

ALTER TABLE passages ALTER COLUMN lex_version SET DEFAULT 4;

ALTER TABLE memory_files ALTER COLUMN lex_version SET DEFAULT 4;

DROP INDEX chunks_outdated_words;

DROP INDEX messages_outdated_words;

DROP INDEX passages_outdated_words;

DROP INDEX memory_files_outdated_words;

CREATE INDEX chunks_outdated_words ON chunks (org, key) WHERE lex_version < 4;

CREATE INDEX messages_outdated_words ON messages (org, key) WHERE (lex_version < 4) AND (lex IS NOT NULL);

CREATE INDEX passages_outdated_words ON passages (org, key) WHERE lex_version < 4;

CREATE INDEX memory_files_outdated_words ON memory_files (org, key) WHERE lex_version < 4;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
