-- Archives are sets of passages, attached to agents as one; a deleted one is hidden until its passages are cleared away.
CREATE TABLE archives (
	key         bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id          text        NOT NULL DEFAULT 'archive-' || gen_random_uuid(),
	org         integer     NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	name        text        NOT NULL,
	description text,
	metadata    jsonb,
	embedding   text,
	deleted_at  timestamptz,
	created_at  timestamptz NOT NULL DEFAULT now(),
	updated_at  timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT archives_id_key UNIQUE (id),
	CONSTRAINT archives_name_length CHECK (length(name) BETWEEN 1 AND 255)
);
CREATE INDEX archives_org ON archives (org, created_at, key);
CREATE INDEX archives_deleted ON archives (key) WHERE deleted_at IS NOT NULL;

-- The archives of an agent. What it inserts goes to its default one.
CREATE TABLE agent_archives (
	agent_id    text        NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
	archive_key bigint      NOT NULL REFERENCES archives (key) ON DELETE CASCADE,
	org         integer     NOT NULL,
	is_default  boolean     NOT NULL,
	attached_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (agent_id, archive_key)
);
CREATE UNIQUE INDEX agent_archives_default ON agent_archives (agent_id) WHERE is_default;
CREATE INDEX agent_archives_archive ON agent_archives (archive_key);

-- Passages. An archive has each text once. happened_at is when what it says was so; lex and terms as messages have them.
CREATE TABLE passages (
	key         bigint              GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id          uuid                NOT NULL DEFAULT gen_random_uuid(),
	org         integer             NOT NULL,
	archive_key bigint              NOT NULL REFERENCES archives (key),
	text        text                NOT NULL,
	sha256      bytea               NOT NULL,
	tags        text[]              NOT NULL DEFAULT '{}',
	metadata    jsonb               NOT NULL DEFAULT '{}',
	happened_at timestamptz         NOT NULL DEFAULT now(),
	created_at  timestamptz         NOT NULL DEFAULT now(),
	updated_at  timestamptz         NOT NULL DEFAULT now(),
	lex         sparsevec(16777216) NOT NULL,
	terms       bigint[]            NOT NULL,
	CONSTRAINT passages_id_key UNIQUE (id),
	CONSTRAINT passages_text_key UNIQUE (archive_key, sha256)
);
ALTER TABLE passages ALTER COLUMN lex SET STORAGE MAIN;
CREATE INDEX passages_archive ON passages (archive_key, happened_at, key);
CREATE INDEX passages_org ON passages (org, key);
-- Terms carry their archive in the bits above theirs, so that an entry of the index is one archive's.
CREATE INDEX passages_terms ON passages USING gin (terms);

DO $$
BEGIN
	ALTER TABLE passages ALTER COLUMN text SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN
	NULL;
END $$;

CREATE TRIGGER archives_keep_place AFTER DELETE ON archives
	REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION keep_deleted_places();

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
