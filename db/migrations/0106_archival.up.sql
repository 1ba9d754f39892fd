-- Archives and their passages.

-- The tags of passages, each with the archive's key, for an index of them: a tag that many archives have is found in
-- one.
CREATE FUNCTION owned_tags(owner bigint, tags text[]) RETURNS text[] LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN (SELECT array_agg(owner::text || ' ' || tag) FROM unnest(tags) AS tag);

-- Archives are sets of passages, attached to agents as one; a deleted one is hidden until its passages are cleared
-- away.
CREATE TABLE archives (
	org            integer     NOT NULL,
	key            bigserial   NOT NULL,
	id             text        NOT NULL DEFAULT ('archive-' || gen_random_uuid()),
	name           text        NOT NULL,
	description    text,
	metadata       jsonb,
	embedding      text,
	deleted_at     timestamptz,
	created_at     timestamptz NOT NULL DEFAULT now(),
	updated_at     timestamptz NOT NULL DEFAULT now(),
	-- The space that an archive's passages have their vectors in, or wait for them; none before there was an
	-- embeddings endpoint. embed_error says why they wait.
	embedded_space smallint,
	embed_error    text,
	made_by        jsonb,
	changed_by     jsonb,
	PRIMARY KEY (org, key),
	CONSTRAINT archives_id_key UNIQUE (org, id),
	CONSTRAINT archives_makers CHECK ((octet_length(made_by::text) <= 2000) AND
		(octet_length(changed_by::text) <= 2000)),
	CONSTRAINT archives_name_length CHECK (length(name) BETWEEN 1 AND 255),
	CONSTRAINT archives_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
CREATE INDEX archives_deleted ON archives (org, key) WHERE deleted_at IS NOT NULL;
CREATE INDEX archives_org ON archives (org, created_at, key);

-- The archives of an agent. What it inserts goes to its default one.
CREATE TABLE agent_archives (
	org         integer     NOT NULL,
	agent_id    text        NOT NULL,
	archive_key bigint      NOT NULL,
	is_default  boolean     NOT NULL,
	attached_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (org, agent_id, archive_key),
	CONSTRAINT agent_archives_agent_id_fkey FOREIGN KEY (org, agent_id)
		REFERENCES agents (org, id) ON DELETE CASCADE,
	CONSTRAINT agent_archives_archive_key_fkey FOREIGN KEY (org, archive_key)
		REFERENCES archives (org, key) ON DELETE CASCADE
);
CREATE INDEX agent_archives_archive ON agent_archives (org, archive_key);
CREATE UNIQUE INDEX agent_archives_default ON agent_archives (org, agent_id) WHERE is_default;

-- Passages. An archive has each text once. happened_at is when what it says was so; lex and terms as messages have
-- them.
CREATE TABLE passages (
	org           integer              NOT NULL,
	key           bigserial            NOT NULL,
	id            uuid                 NOT NULL DEFAULT gen_random_uuid(),
	archive_key   bigint               NOT NULL,
	text          text COMPRESSION lz4 NOT NULL,
	sha256        bytea                NOT NULL,
	tags          text[]               NOT NULL DEFAULT '{}',
	metadata      jsonb                NOT NULL DEFAULT '{}',
	happened_at   timestamptz          NOT NULL DEFAULT now(),
	created_at    timestamptz          NOT NULL DEFAULT now(),
	updated_at    timestamptz          NOT NULL DEFAULT now(),
	lex           sparsevec(16777216)  NOT NULL,
	terms         bigint[]             NOT NULL,
	-- When passages hold: from valid_from on, and before valid_until; NULL is no bound. superseded_by is the
	-- passage of the same archive that took the place of one that ended.
	valid_from    timestamptz,
	valid_until   timestamptz,
	superseded_by bigint,
	-- Who stored something: the key, agent, conversation, position and tool. The ids are text without foreign keys:
	-- they tell what happened, also when the key or the agent is deleted since.
	-- Versions of memory files and of working memory have their author, which is of the same shape.
	provenance    jsonb,
	lex_version   smallint             NOT NULL DEFAULT 3,
	PRIMARY KEY (org, key),
	CONSTRAINT passages_archive_key UNIQUE (org, archive_key, key),
	CONSTRAINT passages_id_key UNIQUE (org, id),
	CONSTRAINT passages_provenance CHECK (octet_length(provenance::text) <= 2000),
	CONSTRAINT passages_text_key UNIQUE NULLS NOT DISTINCT (org, archive_key, sha256, valid_until),
	CONSTRAINT passages_superseded_by_another CHECK (superseded_by <> key),
	CONSTRAINT passages_superseded_ended CHECK (superseded_by IS NULL OR valid_until IS NOT NULL),
	CONSTRAINT passages_validity CHECK (valid_until > valid_from),
	CONSTRAINT passages_archive_key_fkey FOREIGN KEY (org, archive_key) REFERENCES archives (org, key),
	CONSTRAINT passages_superseded_by FOREIGN KEY (org, archive_key, superseded_by)
		REFERENCES passages (org, archive_key, key) DEFERRABLE INITIALLY DEFERRED
);
ALTER TABLE passages ALTER COLUMN lex SET STORAGE MAIN;
CREATE INDEX passages_archive ON passages (org, archive_key, happened_at, key);
CREATE INDEX passages_outdated_words ON passages (org, key) WHERE lex_version < 3;
CREATE INDEX passages_superseded ON passages (org, archive_key, superseded_by) WHERE superseded_by IS NOT NULL;
CREATE INDEX passages_tags ON passages USING gin (owned_tags(archive_key, tags)) WITH (fastupdate=off)
	WHERE tags <> '{}';
-- Terms carry their archive in the bits above theirs, so that an entry of the index is one archive's.
CREATE INDEX passages_terms ON passages USING gin (terms);

-- Passages that lack their vector in their archive's space. One that the endpoint refused stays, with the reason,
-- until its text is another or the space is.
CREATE TABLE unembedded_passages (
	org         integer NOT NULL,
	passage_key bigint  NOT NULL,
	archive_key bigint  NOT NULL,
	refused     text,
	PRIMARY KEY (org, passage_key),
	CONSTRAINT unembedded_passages_passage FOREIGN KEY (org, archive_key, passage_key)
		REFERENCES passages (org, archive_key, key) ON DELETE CASCADE
);
CREATE INDEX unembedded_passages_refused ON unembedded_passages (org, archive_key) WHERE refused IS NOT NULL;
CREATE INDEX unembedded_passages_waiting ON unembedded_passages (org, archive_key, passage_key)
	WHERE refused IS NULL;

-- Vectors as messages have them: inline in a narrow row, with what searches filter by.
CREATE TABLE passage_vectors (
	org         integer     NOT NULL,
	space_id    smallint    NOT NULL,
	passage_key bigint      NOT NULL,
	archive_key bigint      NOT NULL,
	tags        text[]      NOT NULL,
	happened_at timestamptz NOT NULL,
	embedding   halfvec     NOT NULL,
	-- Vectors repeat what searches filter by.
	valid_from  timestamptz,
	valid_until timestamptz,
	PRIMARY KEY (org, passage_key, space_id),
	CONSTRAINT passage_vectors_passage FOREIGN KEY (org, archive_key, passage_key)
		REFERENCES passages (org, archive_key, key) ON DELETE CASCADE,
	CONSTRAINT passage_vectors_space_id_fkey FOREIGN KEY (space_id)
		REFERENCES embedding_spaces (id) ON DELETE CASCADE
) WITH (toast_tuple_target = 8160);
CREATE INDEX passage_vectors_scope ON passage_vectors (org, space_id, archive_key);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
