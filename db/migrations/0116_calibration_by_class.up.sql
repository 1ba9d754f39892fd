-- What providers reported of a model's prompts, as a factor for each class of text: see tokens.Calibration. factor is
-- of the prompt that was reported latest; growth is not used any more.
ALTER TABLE model_factors ADD COLUMN regression json;

ALTER TABLE model_factors DROP CONSTRAINT model_factors_range;

ALTER TABLE model_factors ADD CONSTRAINT model_factors_range
	CHECK (factor > 0 AND factor <= 2 AND growth BETWEEN 0.9 AND 2);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
