-- How long an organization keeps what can be made again or is only a record: days by kind; a kind that is absent has the
-- default.
ALTER TABLE organizations ADD COLUMN retention jsonb NOT NULL DEFAULT '{}';

-- When a piece was last in a prompt that was handed out, to the hour: a sweep leaves newer ones alone.
ALTER TABLE prompt_parts ADD COLUMN used_at timestamptz NOT NULL DEFAULT now();
CREATE INDEX prompts_age ON prompts (org, handed_out_at);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
