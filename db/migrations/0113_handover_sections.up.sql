-- A hand-over says what the session was asked to do, and what holds it up.
ALTER TABLE handover_updates DROP CONSTRAINT handover_updates_section;
ALTER TABLE handover_updates ADD CONSTRAINT handover_updates_section CHECK (section IN
	('task', 'done', 'decided', 'learned', 'open', 'next', 'blocked', 'entity'));

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
