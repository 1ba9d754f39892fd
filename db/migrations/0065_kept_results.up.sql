-- The whole of a tool's result that a caller shows its model in part: it belongs to a conversation, and no message has
-- it.
ALTER TABLE clips
	ALTER COLUMN position DROP NOT NULL,
	ALTER COLUMN part DROP NOT NULL,
	ADD COLUMN created_at timestamptz,
	ADD CONSTRAINT clips_place CHECK ((position IS NULL) = (part IS NULL) AND (position IS NULL) = (created_at IS NOT NULL));
CREATE INDEX clips_kept ON clips (org, created_at) WHERE position IS NULL;
