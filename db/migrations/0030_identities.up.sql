-- Whom or what agents and blocks belong to, as the organization's programs name it.
CREATE TABLE identities (
	org            integer     NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	key            bigint      GENERATED ALWAYS AS IDENTITY,
	id             text        NOT NULL DEFAULT 'identity-' || gen_random_uuid(),
	identifier_key text        NOT NULL,
	name           text        NOT NULL,
	identity_type  text        NOT NULL,
	properties     json        NOT NULL,
	created_at     timestamptz NOT NULL DEFAULT now(),
	updated_at     timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (org, key),
	CONSTRAINT identities_id_key UNIQUE (org, id),
	CONSTRAINT identities_identifier_key UNIQUE (org, identifier_key),
	CONSTRAINT identities_identity_type CHECK (identity_type IN ('org', 'user', 'other')),
	CONSTRAINT identities_lengths CHECK (length(identifier_key) BETWEEN 1 AND 500 AND length(name) BETWEEN 1 AND 500)
);
CREATE INDEX identities_by_creation ON identities (org, created_at, key);

CREATE TABLE agent_identities (
	org          integer NOT NULL,
	agent_id     text    NOT NULL,
	identity_key bigint  NOT NULL,
	PRIMARY KEY (org, agent_id, identity_key),
	CONSTRAINT agent_identities_agent FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	CONSTRAINT agent_identities_identity FOREIGN KEY (org, identity_key) REFERENCES identities (org, key) ON DELETE CASCADE
);
CREATE INDEX agent_identities_identity ON agent_identities (org, identity_key);

CREATE TABLE block_identities (
	org          integer NOT NULL,
	block_key    bigint  NOT NULL,
	identity_key bigint  NOT NULL,
	PRIMARY KEY (org, block_key, identity_key),
	CONSTRAINT block_identities_block FOREIGN KEY (org, block_key) REFERENCES blocks (org, key) ON DELETE CASCADE,
	CONSTRAINT block_identities_identity FOREIGN KEY (org, identity_key) REFERENCES identities (org, key) ON DELETE CASCADE
);
CREATE INDEX block_identities_identity ON block_identities (org, identity_key);

CREATE TRIGGER identities_keep_place AFTER DELETE ON identities
	REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION keep_deleted_places();

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
