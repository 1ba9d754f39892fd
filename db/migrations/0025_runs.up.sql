-- The runs of agents on this server: each is the work on one request. One runs at a time in a conversation. owner is the server
-- that works on it; another one takes it over when that server is gone. request is what the client asked for, so that the run can
-- go on elsewhere.
CREATE TABLE runs (
	org              integer     NOT NULL REFERENCES organizations (org) ON DELETE CASCADE,
	key              bigint      GENERATED ALWAYS AS IDENTITY,
	id               text        NOT NULL,
	agent_key        bigint      NOT NULL,
	conversation_key bigint      NOT NULL,
	status           text        NOT NULL DEFAULT 'running',
	stop_reason      text,
	error_type       text,
	error            text,
	background       boolean     NOT NULL,
	request          jsonb       NOT NULL,
	owner            text        NOT NULL,
	first_token_at   timestamptz,
	cancelled_at     timestamptz,
	created_at       timestamptz NOT NULL DEFAULT now(),
	completed_at     timestamptz,
	PRIMARY KEY (org, key),
	CONSTRAINT runs_id_key UNIQUE (org, id),
	CONSTRAINT runs_agent FOREIGN KEY (org, agent_key) REFERENCES agents (org, key) ON DELETE CASCADE,
	CONSTRAINT runs_conversation FOREIGN KEY (org, conversation_key) REFERENCES conversations (org, key) ON DELETE CASCADE,
	CONSTRAINT runs_status CHECK (status IN ('running', 'completed', 'failed', 'cancelled')),
	CONSTRAINT runs_ended CHECK ((status = 'running') = (completed_at IS NULL))
);
CREATE UNIQUE INDEX runs_one_at_a_time ON runs (org, conversation_key) WHERE status = 'running';
CREATE INDEX runs_of_conversation ON runs (org, conversation_key, created_at, key);
CREATE INDEX runs_of_agent ON runs (org, agent_key, created_at, key);
CREATE INDEX runs_by_creation ON runs (org, created_at, key);

-- The steps of runs: each is one answer of a model, or a failure to get one. Times are in nanoseconds, usage in tokens.
CREATE TABLE steps (
	org           integer     NOT NULL,
	key           bigint      GENERATED ALWAYS AS IDENTITY,
	id            text        NOT NULL,
	run_key       bigint      NOT NULL,
	agent_key     bigint      NOT NULL,
	model         text        NOT NULL,
	handle        text        NOT NULL,
	provider      text        NOT NULL,
	endpoint_type text        NOT NULL,
	context_window integer    NOT NULL,
	status        text        NOT NULL,
	stop_reason   text,
	error_type    text,
	error         text,
	prompt_tokens integer     NOT NULL DEFAULT 0,
	completion_tokens integer NOT NULL DEFAULT 0,
	cached_tokens integer     NOT NULL DEFAULT 0,
	cache_write_tokens integer NOT NULL DEFAULT 0,
	reasoning_tokens integer  NOT NULL DEFAULT 0,
	model_ns      bigint      NOT NULL DEFAULT 0,
	feedback      text,
	tags          text[]      NOT NULL DEFAULT '{}',
	created_at    timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (org, key),
	CONSTRAINT steps_id_key UNIQUE (org, id),
	CONSTRAINT steps_run FOREIGN KEY (org, run_key) REFERENCES runs (org, key) ON DELETE CASCADE,
	CONSTRAINT steps_status CHECK (status IN ('success', 'failed')),
	CONSTRAINT steps_feedback CHECK (feedback IN ('positive', 'negative'))
);
CREATE INDEX steps_of_run ON steps (org, run_key, created_at, key);
CREATE INDEX steps_of_agent ON steps (org, agent_key, created_at, key);
CREATE INDEX steps_by_creation ON steps (org, created_at, key);

-- What the clients of background runs are sent, in order, for some hours.
CREATE TABLE run_items (
	org     integer NOT NULL,
	run_key bigint  NOT NULL,
	seq     bigint  NOT NULL,
	item    json    NOT NULL,
	PRIMARY KEY (org, run_key, seq),
	CONSTRAINT run_items_run FOREIGN KEY (org, run_key) REFERENCES runs (org, key) ON DELETE CASCADE
);

CREATE INDEX messages_of_run ON messages (org, run_id, position) WHERE run_id IS NOT NULL;
CREATE INDEX messages_of_step ON messages (org, step_id, position) WHERE step_id IS NOT NULL;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
