-- What an organization may have at most; NULL, and no row, are no limit. The row is locked as a transaction that adds to
-- what the organization has ends: the table of organizations has a copy on each node of a cluster, and this one has not.
CREATE TABLE quotas (
	org                integer PRIMARY KEY,
	agents             bigint,
	stored_bytes       bigint,
	requests_per_month bigint,
	CONSTRAINT quotas_org FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);
INSERT INTO quotas (org, agents, stored_bytes, requests_per_month)
SELECT org, (quotas ->> 'agents')::bigint, (quotas ->> 'stored_bytes')::bigint,
       (quotas ->> 'requests_per_month')::bigint
FROM organizations WHERE quotas <> '{}';
ALTER TABLE organizations DROP COLUMN quotas;

-- The statements that add, change and delete rows count them.
DO $$
DECLARE
	t record;
BEGIN
	FOR t IN
		SELECT tgname, tgrelid::regclass AS of FROM pg_trigger
		WHERE tgfoid IN ('count_stored'::regproc, 'count_resized'::regproc, 'check_quota_last'::regproc)
	LOOP
		EXECUTE format('DROP TRIGGER %I ON %s', t.tgname, t.of);
	END LOOP;
END $$;
DROP FUNCTION count_stored();
DROP FUNCTION count_resized();
DROP FUNCTION check_quota_last();
DROP FUNCTION check_quota(integer, text, bigint, boolean);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
