-- The index of words of all memories.

-- The index of words goes by segments: each inverts the stored weights of the rows that one owner, a folder, an
-- archive or the log of an agent, has at the places after after_place up to until_place. The places of chunks and
-- passages are their keys; the places of messages are their seqs. rows counts the rows, row_keys lists the keys of rows
-- with words, and size is the number of bytes of the postings. A segment never changes; it is replaced whole. Rows
-- that no segment has are ranked by their own weights.
CREATE TABLE word_segments (
	org         integer   NOT NULL,
	key         bigserial NOT NULL,
	folder_key  bigint,
	archive_key bigint,
	agent_key   bigint,
	after_place bigint    NOT NULL,
	until_place bigint    NOT NULL,
	rows        integer   NOT NULL,
	size        integer   NOT NULL,
	shift       smallint  NOT NULL,
	row_keys    bytea     NOT NULL,
	vocabulary  bytea     NOT NULL,
	PRIMARY KEY (org, key),
	CONSTRAINT word_segments_of_agent UNIQUE (org, agent_key, until_place),
	CONSTRAINT word_segments_of_archive UNIQUE (org, archive_key, until_place),
	CONSTRAINT word_segments_of_folder UNIQUE (org, folder_key, until_place),
	CONSTRAINT word_segments_owner CHECK (num_nonnulls(folder_key, archive_key, agent_key) = 1),
	CONSTRAINT word_segments_places CHECK (after_place < until_place),
	CONSTRAINT word_segments_agent FOREIGN KEY (org, agent_key) REFERENCES agent_logs (org, key) ON DELETE CASCADE,
	CONSTRAINT word_segments_archive FOREIGN KEY (org, archive_key) REFERENCES archives (org, key) ON DELETE CASCADE,
	CONSTRAINT word_segments_folder FOREIGN KEY (org, folder_key) REFERENCES folders (org, key) ON DELETE CASCADE,
	CONSTRAINT word_segments_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
ALTER TABLE word_segments ALTER COLUMN row_keys SET STORAGE EXTERNAL;
ALTER TABLE word_segments ALTER COLUMN vocabulary SET STORAGE EXTERNAL;

-- The postings of a segment's terms. A term's number, shifted right by the segment's shift, gives its bucket.
CREATE TABLE word_postings (
	org         integer NOT NULL,
	segment_key bigint  NOT NULL,
	bucket      integer NOT NULL,
	postings    bytea   NOT NULL,
	PRIMARY KEY (org, segment_key, bucket),
	CONSTRAINT word_postings_segment FOREIGN KEY (org, segment_key)
		REFERENCES word_segments (org, key) ON DELETE CASCADE
);
ALTER TABLE word_postings ALTER COLUMN postings SET STORAGE EXTERNAL;

-- The places of rows that changed, or were erased, since a segment may have read them.
CREATE TABLE word_changes (
	org         integer   NOT NULL,
	key         bigserial NOT NULL,
	folder_key  bigint,
	archive_key bigint,
	agent_key   bigint,
	place       bigint    NOT NULL,
	PRIMARY KEY (org, key),
	CONSTRAINT word_changes_owner CHECK (num_nonnulls(folder_key, archive_key, agent_key) = 1),
	CONSTRAINT word_changes_agent FOREIGN KEY (org, agent_key) REFERENCES agent_logs (org, key) ON DELETE CASCADE,
	CONSTRAINT word_changes_archive FOREIGN KEY (org, archive_key) REFERENCES archives (org, key) ON DELETE CASCADE,
	CONSTRAINT word_changes_folder FOREIGN KEY (org, folder_key) REFERENCES folders (org, key) ON DELETE CASCADE,
	CONSTRAINT word_changes_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
CREATE INDEX word_changes_of_agent ON word_changes (org, agent_key) WHERE agent_key IS NOT NULL;
CREATE INDEX word_changes_of_archive ON word_changes (org, archive_key) WHERE archive_key IS NOT NULL;
CREATE INDEX word_changes_of_folder ON word_changes (org, folder_key) WHERE folder_key IS NOT NULL;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
