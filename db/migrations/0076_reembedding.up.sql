-- The making of the vectors of a new embedding space beside those of the one in use, until all servers switch to it.
-- One at a time, of all organizations.
CREATE TABLE reembedding (
	only_one    boolean     PRIMARY KEY DEFAULT true,
	from_space  smallint    NOT NULL,
	to_space    smallint    NOT NULL,
	state       text        NOT NULL DEFAULT 'running',
	done        bigint      NOT NULL DEFAULT 0, -- texts with a vector in the new space
	total       bigint,                         -- texts with one in the old space; NULL until they are counted
	refused     bigint      NOT NULL DEFAULT 0, -- texts that the new endpoint refused
	error       text,                           -- why it does not go on now
	started_at  timestamptz NOT NULL DEFAULT now(),
	finished_at timestamptz,
	CONSTRAINT reembedding_only_one CHECK (only_one),
	CONSTRAINT reembedding_spaces CHECK (from_space <> to_space),
	CONSTRAINT reembedding_state CHECK (state IN ('running', 'switched', 'cancelled')),
	CONSTRAINT reembedding_from FOREIGN KEY (from_space) REFERENCES embedding_spaces (id) ON DELETE CASCADE,
	CONSTRAINT reembedding_to FOREIGN KEY (to_space) REFERENCES embedding_spaces (id) ON DELETE CASCADE
);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
