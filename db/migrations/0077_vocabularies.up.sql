-- The terms of a segment of the index of words, with the number of its rows that have each: the other spellings of a
-- word are looked up here. Segments are made again from the rows, those of before without anybody asking for it.
TRUNCATE word_segments, word_postings;
ALTER TABLE word_segments ADD COLUMN vocabulary bytea NOT NULL;
ALTER TABLE word_segments ALTER COLUMN vocabulary SET STORAGE EXTERNAL;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
