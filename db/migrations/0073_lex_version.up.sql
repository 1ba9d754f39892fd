-- The version of the terms and weights that a row's lex and terms hold: embed.LexVersion when they were made. What is older
-- than the default is made again in the background, and found through the index of its table. The pieces of a message
-- are of its version.
ALTER TABLE chunks ADD COLUMN lex_version smallint NOT NULL DEFAULT 1;
ALTER TABLE chunks ALTER COLUMN lex_version SET DEFAULT 2;
CREATE INDEX chunks_outdated_words ON chunks (org, key) WHERE lex_version < 2;

ALTER TABLE passages ADD COLUMN lex_version smallint NOT NULL DEFAULT 1;
ALTER TABLE passages ALTER COLUMN lex_version SET DEFAULT 2;
CREATE INDEX passages_outdated_words ON passages (org, key) WHERE lex_version < 2;

ALTER TABLE messages ADD COLUMN lex_version smallint NOT NULL DEFAULT 1;
ALTER TABLE messages ALTER COLUMN lex_version SET DEFAULT 2;
CREATE INDEX messages_outdated_words ON messages (org, key) WHERE lex_version < 2 AND lex IS NOT NULL;

ALTER TABLE memory_files ADD COLUMN lex_version smallint NOT NULL DEFAULT 1;
ALTER TABLE memory_files ALTER COLUMN lex_version SET DEFAULT 2;
CREATE INDEX memory_files_outdated_words ON memory_files (org, key) WHERE lex_version < 2;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
