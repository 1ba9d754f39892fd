-- Who the rows belong to. The default organization serves a loopback server with no key.
CREATE TABLE organizations (
	org        integer     GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	id         text        NOT NULL DEFAULT 'org-' || gen_random_uuid(),
	name       text        NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT organizations_id_key UNIQUE (id),
	CONSTRAINT organizations_name_key UNIQUE (name),
	CONSTRAINT organizations_name_length CHECK (length(name) BETWEEN 1 AND 200)
);
INSERT INTO organizations (name) VALUES ('default');

-- Keys are random, so a plain hash of one is as good as the key is long.
CREATE TABLE api_keys (
	id         text        PRIMARY KEY DEFAULT 'key-' || gen_random_uuid(),
	org        integer     NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	name       text        NOT NULL,
	prefix     text        NOT NULL,
	sha256     bytea       NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT api_keys_sha256_key UNIQUE (sha256),
	CONSTRAINT api_keys_name_length CHECK (length(name) BETWEEN 1 AND 200)
);
CREATE INDEX api_keys_org ON api_keys (org);

CREATE TABLE agents (
	key                             bigint      GENERATED ALWAYS AS IDENTITY,
	id                              text        PRIMARY KEY DEFAULT 'agent-' || gen_random_uuid(),
	org                             integer     NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	name                            text        NOT NULL,
	agent_type                      text        NOT NULL,
	description                     text,
	metadata                        jsonb,
	system                          text        NOT NULL,
	tags                            text[]      NOT NULL DEFAULT '{}',
	timezone                        text        NOT NULL DEFAULT 'UTC',
	model                           text,
	embedding                       text,
	context_window_limit            integer,
	max_files_open                  integer,
	per_file_view_window_char_limit integer,
	hidden                          boolean     NOT NULL DEFAULT false,
	settings                        jsonb       NOT NULL DEFAULT '{}',
	created_at                      timestamptz NOT NULL DEFAULT now(),
	updated_at                      timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT agents_key_key UNIQUE (key),
	CONSTRAINT agents_name_length CHECK (length(name) BETWEEN 1 AND 200),
	CONSTRAINT agents_context_window_limit CHECK (context_window_limit BETWEEN 1 AND 100000000),
	CONSTRAINT agents_max_files_open CHECK (max_files_open BETWEEN 1 AND 1000),
	CONSTRAINT agents_view_chars CHECK (per_file_view_window_char_limit BETWEEN 100 AND 10000000)
);
CREATE INDEX agents_org ON agents (org, created_at, key);
CREATE INDEX agents_tags ON agents USING gin (tags);

-- One counter an agent: its events are numbered without a gap, in the order of their commits.
CREATE TABLE agent_heads (
	agent_id text    PRIMARY KEY REFERENCES agents (id) ON DELETE CASCADE,
	org      integer NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	seq      bigint  NOT NULL
);
CREATE TABLE events (
	agent_id text        NOT NULL REFERENCES agents (id) ON DELETE CASCADE,
	seq      bigint      NOT NULL,
	org      integer     NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	type     text        NOT NULL,
	ref_id   text        NOT NULL,
	at       timestamptz NOT NULL,
	PRIMARY KEY (agent_id, seq)
);

-- A space is the set of vectors that one model made: only they may be compared.
CREATE TABLE embedding_spaces (
	id         smallint    GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	provider   text        NOT NULL,
	model      text        NOT NULL,
	dimension  integer     NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	CONSTRAINT embedding_spaces_key UNIQUE (provider, model, dimension),
	CONSTRAINT embedding_spaces_dimension CHECK (dimension BETWEEN 1 AND 4000)
);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
