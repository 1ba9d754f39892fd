-- Prompts are also handed out in the format of OpenAI's Responses API.

ALTER TABLE prompts DROP CONSTRAINT prompts_format,
	ADD CONSTRAINT prompts_format CHECK (format IN ('openai', 'anthropic', 'responses'));

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
