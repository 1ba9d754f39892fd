-- The spaces that vectors are of.

-- A space is the set of vectors that one model made: only they may be compared.
CREATE TABLE embedding_spaces (
	id         smallserial NOT NULL,
	provider   text        NOT NULL,
	model      text        NOT NULL,
	dimension  integer     NOT NULL,
	created_at timestamptz NOT NULL DEFAULT now(),
	-- A space that no server has used for long is cleared away.
	used_at    timestamptz NOT NULL DEFAULT now(),
	PRIMARY KEY (id),
	CONSTRAINT embedding_spaces_key UNIQUE (provider, model, dimension),
	CONSTRAINT embedding_spaces_dimension CHECK (dimension BETWEEN 1 AND 4000)
);

-- A re-embedding: vectors of a new space are made beside the space in use, until all servers switch to the new one.
-- There is one at a time, and it is for all organizations.
CREATE TABLE reembedding (
	only_one    boolean     NOT NULL DEFAULT true,
	from_space  smallint    NOT NULL,
	to_space    smallint    NOT NULL,
	state       text        NOT NULL DEFAULT 'running',
	-- texts with a vector in the new space
	done        bigint      NOT NULL DEFAULT 0,
	-- texts with one in the old space; NULL until they are counted
	total       bigint,
	-- texts that the new endpoint refused
	refused     bigint      NOT NULL DEFAULT 0,
	-- why it does not go on now
	error       text,
	started_at  timestamptz NOT NULL DEFAULT now(),
	finished_at timestamptz,
	PRIMARY KEY (only_one),
	CONSTRAINT reembedding_only_one CHECK (only_one),
	CONSTRAINT reembedding_spaces CHECK (from_space <> to_space),
	CONSTRAINT reembedding_state CHECK (state IN ('running', 'switched', 'cancelled')),
	CONSTRAINT reembedding_from FOREIGN KEY (from_space) REFERENCES embedding_spaces (id) ON DELETE CASCADE,
	CONSTRAINT reembedding_to FOREIGN KEY (to_space) REFERENCES embedding_spaces (id) ON DELETE CASCADE
);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
