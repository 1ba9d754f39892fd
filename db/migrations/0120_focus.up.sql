-- What a caller asked the summary of a compaction to keep above all. NULL without that.
ALTER TABLE compactions ADD COLUMN focus text;
ALTER TABLE compactions ADD CONSTRAINT compactions_focus CHECK (char_length(focus) BETWEEN 1 AND 1000);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
