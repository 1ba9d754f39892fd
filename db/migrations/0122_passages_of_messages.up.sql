-- Long messages are searched by passages, and at is where a passage begins in the message's searchable text, in bytes.
-- The rows of old pieces have 0 until they are weighed again, in the background, as are all rows with words: numbers,
-- dates and parts of words have terms of their own.
ALTER TABLE message_pieces ADD COLUMN at integer NOT NULL DEFAULT 0;

ALTER TABLE chunks ALTER COLUMN lex_version SET DEFAULT 5;

ALTER TABLE messages ALTER COLUMN lex_version SET DEFAULT 5;

ALTER TABLE passages ALTER COLUMN lex_version SET DEFAULT 5;

ALTER TABLE memory_files ALTER COLUMN lex_version SET DEFAULT 5;

DROP INDEX chunks_outdated_words;

DROP INDEX messages_outdated_words;

DROP INDEX passages_outdated_words;

DROP INDEX memory_files_outdated_words;

CREATE INDEX chunks_outdated_words ON chunks (org, key) WHERE lex_version < 5;

CREATE INDEX messages_outdated_words ON messages (org, key) WHERE (lex_version < 5) AND (lex IS NOT NULL);

CREATE INDEX passages_outdated_words ON passages (org, key) WHERE lex_version < 5;

CREATE INDEX memory_files_outdated_words ON memory_files (org, key) WHERE lex_version < 5;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
