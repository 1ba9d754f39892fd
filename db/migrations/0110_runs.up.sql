-- The runs of agents that the server drives, and their sub-agents.

-- The runs of agents on this server: each is the work on one request. One runs at a time in a conversation. owner
-- is the server that works on it; another one takes it over when that server is gone. request is what the client
-- asked for, so that the run can go on elsewhere.
CREATE TABLE runs (
	org              integer     NOT NULL,
	key              bigserial   NOT NULL,
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
	-- The status and the words of the provider for which a run failed.
	error_status     integer,
	error_detail     text,
	PRIMARY KEY (org, key),
	CONSTRAINT runs_agent_key UNIQUE (org, agent_key, key),
	CONSTRAINT runs_id_key UNIQUE (org, id),
	CONSTRAINT runs_ended CHECK ((status = 'running') = (completed_at IS NULL)),
	CONSTRAINT runs_status CHECK (status IN ('running', 'completed', 'failed', 'cancelled')),
	CONSTRAINT runs_agent FOREIGN KEY (org, agent_key) REFERENCES agents (org, key) ON DELETE CASCADE,
	CONSTRAINT runs_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE,
	CONSTRAINT runs_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
CREATE INDEX runs_by_creation ON runs (org, created_at, key);
CREATE INDEX runs_of_agent ON runs (org, agent_key, created_at, key);
CREATE INDEX runs_of_conversation ON runs (org, conversation_key, created_at, key);
CREATE UNIQUE INDEX runs_one_at_a_time ON runs (org, conversation_key) WHERE status = 'running';
-- Runs that tried a failed request of other otids again.
CREATE INDEX runs_retried ON runs (org, conversation_key) WHERE request ? 'retried';

-- The steps of runs: each is one answer of a model, or a failure to get one. Times are in nanoseconds, usage in
-- tokens.
CREATE TABLE steps (
	org                integer     NOT NULL,
	key                bigserial   NOT NULL,
	id                 text        NOT NULL,
	run_key            bigint      NOT NULL,
	agent_key          bigint      NOT NULL,
	model              text        NOT NULL,
	handle             text        NOT NULL,
	provider           text        NOT NULL,
	endpoint_type      text        NOT NULL,
	context_window     integer     NOT NULL,
	status             text        NOT NULL,
	stop_reason        text,
	error_type         text,
	error              text,
	prompt_tokens      integer     NOT NULL DEFAULT 0,
	completion_tokens  integer     NOT NULL DEFAULT 0,
	cached_tokens      integer     NOT NULL DEFAULT 0,
	cache_write_tokens integer     NOT NULL DEFAULT 0,
	reasoning_tokens   integer     NOT NULL DEFAULT 0,
	model_ns           bigint      NOT NULL DEFAULT 0,
	feedback           text,
	tags               text[]      NOT NULL DEFAULT '{}',
	created_at         timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (org, key),
	CONSTRAINT steps_id_key UNIQUE (org, id),
	CONSTRAINT steps_feedback CHECK (feedback IN ('positive', 'negative')),
	CONSTRAINT steps_status CHECK (status IN ('success', 'failed')),
	CONSTRAINT steps_run FOREIGN KEY (org, agent_key, run_key)
		REFERENCES runs (org, agent_key, key) ON DELETE CASCADE
);
CREATE INDEX steps_by_creation ON steps (org, created_at, key);
CREATE INDEX steps_of_agent ON steps (org, agent_key, created_at, key);
CREATE INDEX steps_of_run ON steps (org, run_key, created_at, key);

-- What the clients of background runs are sent, in order, for some hours.
CREATE TABLE run_items (
	org     integer NOT NULL,
	run_key bigint  NOT NULL,
	seq     bigint  NOT NULL,
	item    json    NOT NULL,
	PRIMARY KEY (org, run_key, seq),
	CONSTRAINT run_items_run FOREIGN KEY (org, run_key) REFERENCES runs (org, key) ON DELETE CASCADE
);

-- Sub-agents: a piece of work that an agent's conversation hands to another conversation, of an agent made for it
-- or of a fork, and its result. agent_id is null when the sub-agent was deleted.
CREATE TABLE children (
	org                 integer     NOT NULL,
	key                 bigserial   NOT NULL,
	id                  text        NOT NULL DEFAULT ('child-' || gen_random_uuid()),
	parent_key          bigint      NOT NULL,
	parent_conversation bigint      NOT NULL,
	agent_key           bigint,
	conversation_key    bigint,
	mode                text        NOT NULL,
	name                text        NOT NULL,
	task                text        NOT NULL,
	depth               integer     NOT NULL,
	otid                text,
	call_id             text,
	call_position       integer,
	runs                boolean     NOT NULL,
	-- of the conversation, before its task
	after_position      integer     NOT NULL,
	status              text        NOT NULL DEFAULT 'working',
	result              text,
	message_id          text,
	created_at          timestamptz NOT NULL DEFAULT now(),
	returned_at         timestamptz,
	PRIMARY KEY (org, key),
	CONSTRAINT children_conversation_key UNIQUE (org, conversation_key),
	CONSTRAINT children_id_key UNIQUE (org, id),
	CONSTRAINT children_otid_key UNIQUE (org, parent_key, otid),
	CONSTRAINT children_call CHECK ((call_id IS NULL) = (call_position IS NULL)),
	CONSTRAINT children_mode CHECK (mode IN ('blank', 'brief', 'fork')),
	CONSTRAINT children_returned CHECK ((status = 'working') = (returned_at IS NULL)),
	-- A sub-agent is cancelled on request, and when the conversation that it works for or its own is deleted or
	-- reset. Its record remains until its parent is deleted: agent_key and conversation_key are null when its own
	-- agent was.
	CONSTRAINT children_status CHECK (status IN ('working', 'returned', 'failed', 'cancelled')),
	CONSTRAINT children_own_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) DEFERRABLE INITIALLY DEFERRED,
	CONSTRAINT children_parent FOREIGN KEY (org, parent_key) REFERENCES agents (org, key) ON DELETE CASCADE,
	CONSTRAINT children_parent_conversation FOREIGN KEY (org, parent_key, parent_conversation)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE
);
CREATE INDEX children_of_agent ON children (org, agent_key);
CREATE INDEX children_of_conversation ON children (org, parent_key, parent_conversation);
CREATE INDEX children_of_parent ON children (org, parent_key, created_at, key);
CREATE INDEX children_working_for ON children (org, parent_conversation) WHERE status = 'working';

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
