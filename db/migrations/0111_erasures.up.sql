-- Erasures of texts.

-- Erasures: texts or a message that are taken out of all that an organization stores. While one waits or runs, it
-- has what is to be erased; when it has ended, only its report is left.
CREATE TABLE erasures (
	org          integer     NOT NULL,
	key          bigserial   NOT NULL,
	id           text        NOT NULL DEFAULT ('erasure-' || gen_random_uuid()),
	status       text        NOT NULL,
	texts        text[],
	message_id   text,
	whole_words  boolean     NOT NULL DEFAULT false,
	reason       text,
	requested_by jsonb       NOT NULL,
	decided_by   jsonb,
	report       jsonb       NOT NULL DEFAULT '{}',
	claimed_at   timestamptz,
	created_at   timestamptz NOT NULL DEFAULT now(),
	ended_at     timestamptz,
	-- Since when an erasure is worked on, and since when searches found nothing: what began before may still write
	-- what it read.
	began_at     timestamptz,
	clean_since  timestamptz,
	-- How an erasure ends, once everything is erased: it has forgotten its texts, and writes tables anew.
	ends_as      text,
	PRIMARY KEY (org, key),
	CONSTRAINT erasures_id_key UNIQUE (org, id),
	CONSTRAINT erasures_ends_as CHECK (ends_as IN ('completed', 'incomplete')),
	CONSTRAINT erasures_forgets CHECK (status IN ('pending', 'running') OR texts IS NULL),
	CONSTRAINT erasures_status CHECK (status IN ('pending', 'running', 'completed', 'incomplete', 'denied')),
	CONSTRAINT erasures_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
CREATE INDEX erasures_by_creation ON erasures (org, created_at, key);
CREATE INDEX erasures_running ON erasures (org, key) WHERE status = 'running';

-- The messages of which a text was erased: the marked gaps of the log. A summary that replaces one is made again.
CREATE TABLE erased_messages (
	org              integer     NOT NULL,
	erasure_key      bigint      NOT NULL,
	message_key      bigint      NOT NULL,
	conversation_key bigint      NOT NULL,
	agent_key        bigint      NOT NULL,
	position         integer     NOT NULL,
	seq              bigint      NOT NULL,
	remade           boolean     NOT NULL DEFAULT false,
	at               timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (org, erasure_key, message_key),
	CONSTRAINT erased_messages_conversation FOREIGN KEY (org, agent_key, conversation_key)
		REFERENCES conversations (org, agent_key, key) ON DELETE CASCADE,
	CONSTRAINT erased_messages_erasure FOREIGN KEY (org, erasure_key)
		REFERENCES erasures (org, key) ON DELETE CASCADE,
	CONSTRAINT erased_messages_message FOREIGN KEY (org, message_key)
		REFERENCES messages (org, key) ON DELETE CASCADE
);
CREATE INDEX erased_messages_conversation ON erased_messages (org, agent_key, conversation_key);
CREATE INDEX erased_messages_message ON erased_messages (org, message_key);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
