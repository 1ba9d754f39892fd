-- The length of a message by which sessions are ranked: a quarter for each character of ASCII, one for any other. NULL where tokens, which
-- were estimated so until then, is the same.
ALTER TABLE messages ADD COLUMN length integer;

-- How many tokens the provider of a model counts for one that Loci counts, by the usage that an organization reported: of whole prompts, and
-- of the messages between two reports (NULL before there were two).
CREATE TABLE model_factors (
	org    integer          NOT NULL,
	model  text             NOT NULL, -- empty: agents that name none
	factor double precision NOT NULL,
	growth double precision,
	PRIMARY KEY (org, model),
	CONSTRAINT model_factors_range CHECK (factor BETWEEN 0.9 AND 2 AND growth BETWEEN 0.9 AND 2)
);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
