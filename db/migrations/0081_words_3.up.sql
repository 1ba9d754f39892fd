-- Words have more terms (embed.LexVersion is 3): the rows of before are weighed anew in the background.
ALTER TABLE chunks ALTER COLUMN lex_version SET DEFAULT 3;
DROP INDEX chunks_outdated_words;
CREATE INDEX chunks_outdated_words ON chunks (org, key) WHERE lex_version < 3;

ALTER TABLE passages ALTER COLUMN lex_version SET DEFAULT 3;
DROP INDEX passages_outdated_words;
CREATE INDEX passages_outdated_words ON passages (org, key) WHERE lex_version < 3;

ALTER TABLE messages ALTER COLUMN lex_version SET DEFAULT 3;
DROP INDEX messages_outdated_words;
CREATE INDEX messages_outdated_words ON messages (org, key) WHERE lex_version < 3 AND lex IS NOT NULL;

ALTER TABLE memory_files ALTER COLUMN lex_version SET DEFAULT 3;
DROP INDEX memory_files_outdated_words;
CREATE INDEX memory_files_outdated_words ON memory_files (org, key) WHERE lex_version < 3;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
