-- Organizations, their keys and sessions, and what the server keeps for itself.

-- The server's role owns no table, and only an owner may analyze one.
CREATE FUNCTION analyze_table(relation regclass) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	EXECUTE format('ANALYZE %s', relation);
END $$;
REVOKE EXECUTE ON FUNCTION analyze_table FROM PUBLIC;

-- Who the rows belong to. The default organization serves a loopback server with no key.
CREATE TABLE organizations (
	org           serial      NOT NULL,
	id            text        NOT NULL DEFAULT ('org-' || gen_random_uuid()),
	name          text        NOT NULL,
	created_at    timestamptz NOT NULL DEFAULT now(),
	-- What a caller said is redacted with a key of its organization: the same secret reads the same, and can be
	-- guessed from nothing.
	redaction_key bytea       NOT NULL
		DEFAULT decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'),
	-- A deleted organization has no keys, and its name is free. Its rows are deleted in the background, the row
	-- here last.
	deleted_at    timestamptz,
	-- How long an organization keeps what can be made again or is only a record: days by kind; a kind that is
	-- absent has the default.
	retention     jsonb       NOT NULL DEFAULT '{}',
	-- The policy of an organization's agents that have none of their own, or a change of the server's.
	policy        jsonb,
	-- Makes the ids of an organization's jobs: no number of theirs counts the jobs of others.
	job_salt      uuid        NOT NULL DEFAULT gen_random_uuid(),
	PRIMARY KEY (org),
	CONSTRAINT organizations_id_key UNIQUE (id),
	CONSTRAINT organizations_name_length CHECK (length(name) BETWEEN 1 AND 200)
);
CREATE UNIQUE INDEX organizations_name_key ON organizations (name) WHERE deleted_at IS NULL;

-- A server on loopback serves this one without a key.
INSERT INTO organizations (name) VALUES ('default');

-- Keys are random, so a plain hash of one is as good as the key is long.
CREATE TABLE api_keys (
	org                 integer     NOT NULL,
	id                  text        NOT NULL DEFAULT ('key-' || gen_random_uuid()),
	name                text        NOT NULL,
	prefix              text        NOT NULL,
	sha256              bytea       NOT NULL,
	created_at          timestamptz NOT NULL DEFAULT now(),
	-- Keys of the operator manage the organizations over REST.
	operator            boolean     NOT NULL DEFAULT false,
	-- What a key may do, until when, and how much at once.
	scopes              text[]      NOT NULL DEFAULT '{write}'::text[],
	-- of the scope tools
	agent_ids           text[]      NOT NULL DEFAULT '{}',
	expires_at          timestamptz,
	-- written at most once a minute
	last_used_at        timestamptz,
	requests_per_minute integer,
	requests_at_once    integer,
	PRIMARY KEY (id),
	CONSTRAINT api_keys_sha256_key UNIQUE (sha256),
	CONSTRAINT api_keys_limits_positive CHECK (requests_per_minute > 0 AND requests_at_once > 0),
	CONSTRAINT api_keys_name_length CHECK (length(name) BETWEEN 1 AND 200),
	CONSTRAINT api_keys_operator_is_admin CHECK (NOT operator OR 'admin' = ANY (scopes)),
	CONSTRAINT api_keys_scopes_known CHECK ((cardinality(scopes) > 0) AND (scopes <@
		'{read,tools,write,admin}'::text[])),
	CONSTRAINT api_keys_tools_of_agents CHECK (('tools' = ANY (scopes)) = (cardinality(agent_ids) > 0)),
	CONSTRAINT api_keys_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
CREATE INDEX api_keys_org ON api_keys (org);

-- The hashes of revoked keys: a key in the server's settings that was revoked stays so when the server starts
-- again.
CREATE TABLE revoked_keys (
	sha256     bytea       NOT NULL,
	revoked_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (sha256)
);

-- A row says that a key was made: every request needs one from then on, though the last key be revoked.
CREATE TABLE keys_required (
	required boolean NOT NULL,
	PRIMARY KEY (required),
	CONSTRAINT keys_required_once CHECK (required)
);

-- Who is signed in to the console, and until when. A browser has a secret of its own in place of its person's key,
-- and the table has the hash of the secret. A session ends with its key.
CREATE TABLE console_sessions (
	id         text        NOT NULL DEFAULT ('session-' || gen_random_uuid()),
	sha256     bytea       NOT NULL,
	key_id     text        NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	expires_at timestamptz NOT NULL,
	PRIMARY KEY (sha256),
	CONSTRAINT console_sessions_id_key UNIQUE (id),
	CONSTRAINT console_sessions_key_id_fkey FOREIGN KEY (key_id) REFERENCES api_keys (id) ON DELETE CASCADE
);
CREATE INDEX console_sessions_key ON console_sessions (key_id, created_at);

-- What an organization may have at most; NULL, and no row, are no limit. The row is locked as a transaction that
-- adds to what the organization has ends: the table of organizations has a copy on each node of a cluster, and this
-- one has not.
CREATE TABLE quotas (
	org                integer NOT NULL,
	agents             bigint,
	stored_bytes       bigint,
	requests_per_month bigint,
	PRIMARY KEY (org),
	CONSTRAINT quotas_org FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);

-- The requests of organizations by month, in UTC. Servers add theirs every few seconds.
CREATE TABLE request_counts (
	org      integer NOT NULL,
	month    date    NOT NULL,
	requests bigint  NOT NULL,
	PRIMARY KEY (org, month),
	CONSTRAINT request_counts_month CHECK (extract(day FROM month) = 1),
	CONSTRAINT request_counts_requests CHECK (requests >= 0),
	CONSTRAINT request_counts_org FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);

-- What each change added to what an organization stores. The sums of all rows of an organization are what it
-- stores: no two transactions wait for each other to count. Maintenance replaces rows by their sums.
CREATE TABLE stored_usage (
	org   integer   NOT NULL,
	key   bigserial NOT NULL,
	kind  text      NOT NULL,
	items bigint    NOT NULL,
	bytes bigint    NOT NULL,
	PRIMARY KEY (org, key),
	CONSTRAINT stored_usage_org FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);

-- The policies that the operator set for the agents of all organizations: the newest row holds, before LOCI_POLICY.
-- Null took the policy back. author is the id of a key, or empty.
CREATE TABLE server_policies (
	key    bigserial   NOT NULL,
	policy jsonb,
	author text        NOT NULL,
	at     timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (key)
);

-- Where something stood that was deleted: a caller who pages through a list goes on from there. Kept for a day.
CREATE TABLE deleted_places (
	org        integer     NOT NULL,
	key        bigint      NOT NULL,
	id         text        NOT NULL,
	created_at timestamptz NOT NULL,
	deleted_at timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (org, id),
	CONSTRAINT deleted_places_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
CREATE INDEX deleted_places_time ON deleted_places (deleted_at);

-- Rows are inserted here and rolled back, to see whether anything can be stored.
CREATE TABLE room_checks (
	text text NOT NULL
);

-- When it was last tried whether the database stores changes, by what tried it: the newest time of each.
CREATE TABLE probes (
	name text        NOT NULL,
	at   timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (name)
) WITH (fillfactor = 10);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
