-- Replays of recorded sessions.

-- Replays: recorded sessions that are replayed under policies, as a job in slices. slices counts those that were
-- committed, and fences the next one.
CREATE TABLE replays (
	org        integer     NOT NULL,
	key        bigserial   NOT NULL,
	id         text        NOT NULL DEFAULT ('replay-' || gen_random_uuid()),
	status     text        NOT NULL DEFAULT 'running',
	why        text,
	prices     jsonb       NOT NULL,
	model      text,
	steps      integer     NOT NULL,
	steps_done integer     NOT NULL DEFAULT 0,
	slices     integer     NOT NULL DEFAULT 0,
	created_at timestamptz NOT NULL DEFAULT now(),
	ended_at   timestamptz,
	PRIMARY KEY (org, key),
	CONSTRAINT replays_id_key UNIQUE (org, id),
	CONSTRAINT replays_status CHECK (status IN ('running', 'done', 'failed')),
	CONSTRAINT replays_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);

-- The sessions of a replay, redacted, as JSON.
CREATE TABLE replay_sessions (
	org        integer NOT NULL,
	replay_key bigint  NOT NULL,
	number     integer NOT NULL,
	transcript jsonb   NOT NULL,
	PRIMARY KEY (org, replay_key, number),
	CONSTRAINT replay_sessions_replay FOREIGN KEY (org, replay_key) REFERENCES replays (org, key) ON DELETE CASCADE
);

-- A session under a policy: saved is where it stands between two slices, result what it measured at its end.
CREATE TABLE replay_parts (
	org        integer NOT NULL,
	replay_key bigint  NOT NULL,
	number     integer NOT NULL,
	session    integer NOT NULL,
	settings   jsonb   NOT NULL,
	saved      jsonb,
	result     jsonb,
	PRIMARY KEY (org, replay_key, number),
	CONSTRAINT replay_parts_session FOREIGN KEY (org, replay_key, session)
		REFERENCES replay_sessions (org, replay_key, number) ON DELETE CASCADE
);
CREATE INDEX replay_parts_of_session ON replay_parts (org, replay_key, session);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
