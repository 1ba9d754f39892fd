-- How the tables of Loci are spread over a Citus cluster (12.0 or newer), each organization's rows on
-- one node. Run this on the coordinator, on a database without a running server. Loci itself is not tested on Citus:
-- read docs/scaling.md first.

SET citus.shard_replication_factor = 1; -- the only one with which Citus allows foreign keys

-- Foreign keys. Citus refuses ON UPDATE CASCADE and ON DELETE SET NULL where the key has the column that
-- distributes, also with a list of other columns.
ALTER TABLE books
	DROP CONSTRAINT books_note, -- ON UPDATE CASCADE
	ADD CONSTRAINT books_note FOREIGN KEY (org, key, label) REFERENCES notes(org, key, label) ON DELETE CASCADE;
ALTER TABLE notes
	DROP CONSTRAINT notes_replaces, -- ON DELETE SET NULL (replaces)
	ADD CONSTRAINT notes_replaces FOREIGN KEY (org, replaces) REFERENCES notes(org, key);

-- Triggers. Citus refuses a table that has one, and in a shard none may change another table.
DROP TRIGGER books_keep ON books;

-- Shared tables: each node has a copy. Foreign keys of distributed tables may refer to them.
SELECT create_reference_table('embedding_spaces'); -- a space is a model's, and organizations share models
SELECT create_reference_table('organizations'); -- the organizations themselves
SELECT create_reference_table('api_keys'); -- a key is looked up before its organization is known

-- Tables of organizations, each after those that it refers to.
SELECT create_distributed_table('notes', 'org', colocate_with => 'none');
SELECT create_distributed_table('books', 'org', colocate_with => 'notes');

-- Tables that stay on the coordinator. The queue of jobs is one for all organizations, and takes its rows
-- with FOR UPDATE SKIP LOCKED, which Citus runs on one shard only.
--   river_job
--   schema_migrations

-- Identity columns. Servers connect to the coordinator alone: elsewhere only those of type bigint get
-- numbers, from the node's number × 2^48 on, for which the terms of messages and passages have no room.
--   embedding_spaces.id smallint
--   organizations.org integer
--   notes.key bigint

-- Indexes of searches. Each shard has its own. CREATE INDEX CONCURRENTLY, by which servers make those of
-- vectors, may fail on some shards, and leaves an invalid index then.
--   notes: notes_terms

-- Advisory locks, LISTEN and NOTIFY hold on one node: servers and commands connect to the coordinator.
