-- What an organization may have at most: numbers by quota (agents, stored_bytes, requests_per_month); one that is absent
-- is no limit.
ALTER TABLE organizations ADD COLUMN quotas jsonb NOT NULL DEFAULT '{}';

-- The requests of organizations by month, in UTC. Servers add theirs every few seconds.
CREATE TABLE request_counts (
	org      integer NOT NULL,
	month    date    NOT NULL,
	requests bigint  NOT NULL,
	PRIMARY KEY (org, month),
	CONSTRAINT request_counts_org FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE,
	CONSTRAINT request_counts_month CHECK (extract(day FROM month) = 1),
	CONSTRAINT request_counts_requests CHECK (requests >= 0)
);

-- What each change added to what an organization stores. The sums of all rows of an organization are what it stores: no
-- two transactions wait for each other to count. Maintenance replaces rows by their sums.
CREATE TABLE stored_usage (
	org   integer NOT NULL,
	key   bigint  GENERATED ALWAYS AS IDENTITY,
	kind  text    NOT NULL,
	items bigint  NOT NULL,
	bytes bigint  NOT NULL,
	PRIMARY KEY (org, key),
	CONSTRAINT stored_usage_org FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);

-- check_quota refuses what takes an organization beyond its quota of a kind of thing. more is what was just added.
CREATE FUNCTION check_quota(of_org integer, quota text, more bigint, lock boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	allowed bigint;
	used    bigint;
BEGIN
	SELECT (quotas ->> quota)::bigint INTO allowed FROM organizations WHERE org = of_org;
	IF allowed IS NULL OR more <= 0 THEN
		RETURN;
	END IF;
	IF lock THEN -- who commits first is counted by who commits next
		SELECT (quotas ->> quota)::bigint INTO allowed FROM organizations WHERE org = of_org FOR NO KEY UPDATE;
	END IF;
	SELECT coalesce(sum(CASE WHEN quota <> 'agents' THEN bytes WHEN kind = 'agents' THEN items END), 0) INTO used
	FROM stored_usage WHERE org = of_org;
	IF used > allowed THEN
		RAISE EXCEPTION 'the quota % is used up', quota
		USING ERRCODE = 'LQ001',
		      DETAIL = json_build_object('quota', quota, 'used', used - more, 'requested', more, 'limit', allowed)::text;
	END IF;
END $$;

-- count_stored counts the rows that a statement inserts or deletes. What a turn that has begun still brings, and what an
-- erasure writes, is counted and never refused.
CREATE FUNCTION count_stored() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	sign integer := CASE TG_OP WHEN 'DELETE' THEN -1 ELSE 1 END;
BEGIN
	CASE TG_TABLE_NAME
	WHEN 'agents' THEN
		INSERT INTO stored_usage (org, kind, items, bytes)
		SELECT org, 'agents', sign * count(*), 0 FROM changed GROUP BY org;
		IF sign > 0 THEN
			PERFORM check_quota(org, 'agents', count(*), false) FROM changed GROUP BY org;
		END IF;
	WHEN 'files' THEN
		INSERT INTO stored_usage (org, kind, items, bytes)
		SELECT org, 'documents', sign * count(*), sign * sum(size_bytes) FROM changed GROUP BY org;
		IF sign > 0 THEN
			PERFORM check_quota(org, 'stored_bytes', sum(size_bytes)::bigint, false) FROM changed GROUP BY org;
		END IF;
	WHEN 'messages' THEN
		INSERT INTO stored_usage (org, kind, items, bytes)
		SELECT org, 'messages', sign * count(*), sign * sum(octet_length(content::text)) FROM changed GROUP BY org;
		IF sign > 0 THEN
			PERFORM check_quota(org, 'stored_bytes', sum(octet_length(content::text)), false) FROM changed
			WHERE role IN ('user', 'system') GROUP BY org;
		END IF;
	WHEN 'passages' THEN
		INSERT INTO stored_usage (org, kind, items, bytes)
		SELECT org, 'passages', sign * count(*), sign * sum(octet_length(text)) FROM changed GROUP BY org;
		IF sign > 0 THEN
			PERFORM check_quota(org, 'stored_bytes', sum(octet_length(text)), false) FROM changed GROUP BY org;
		END IF;
	WHEN 'blobs' THEN
		INSERT INTO stored_usage (org, kind, items, bytes)
		SELECT org, 'long_results', sign * count(*), sign * sum(size_bytes) FROM changed GROUP BY org;
	WHEN 'block_versions' THEN
		INSERT INTO stored_usage (org, kind, items, bytes)
		SELECT org, 'block_versions', sign * count(*), sign * sum(octet_length(value)) FROM changed GROUP BY org;
		IF sign > 0 THEN
			PERFORM check_quota(org, 'stored_bytes', sum(octet_length(value)), false) FROM changed GROUP BY org;
		END IF;
	WHEN 'memory_file_versions' THEN
		INSERT INTO stored_usage (org, kind, items, bytes)
		SELECT org, 'memory_file_versions', sign * count(*), sign * sum(coalesce(octet_length(content), 0))
		FROM changed GROUP BY org;
		IF sign > 0 THEN
			PERFORM check_quota(org, 'stored_bytes', sum(octet_length(content)), false) FROM changed
			WHERE change <> 'redacted' AND content IS NOT NULL GROUP BY org;
		END IF;
	END CASE;
	RETURN NULL;
END $$;

-- count_resized counts a row that gets another size.
CREATE FUNCTION count_resized() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
	more bigint;
BEGIN
	CASE TG_TABLE_NAME
	WHEN 'files', 'blobs' THEN more := NEW.size_bytes - OLD.size_bytes;
	WHEN 'messages' THEN more := octet_length(NEW.content::text) - octet_length(OLD.content::text);
	WHEN 'passages' THEN more := octet_length(NEW.text) - octet_length(OLD.text);
	WHEN 'block_versions' THEN more := octet_length(NEW.value) - octet_length(OLD.value);
	WHEN 'memory_file_versions' THEN
		more := coalesce(octet_length(NEW.content), 0) - coalesce(octet_length(OLD.content), 0);
	END CASE;
	IF more <> 0 THEN
		INSERT INTO stored_usage (org, kind, items, bytes) VALUES (NEW.org, TG_ARGV[0], 0, more);
	END IF;
	RETURN NULL;
END $$;

-- check_quota_last checks a row once more as its transaction commits, when no other one can add to what it sees.
CREATE FUNCTION check_quota_last() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	CASE TG_TABLE_NAME
	WHEN 'agents' THEN PERFORM check_quota(NEW.org, 'agents', 1, true);
	WHEN 'files' THEN PERFORM check_quota(NEW.org, 'stored_bytes', NEW.size_bytes, true);
	END CASE;
	RETURN NULL;
END $$;

CREATE TRIGGER agents_count_new AFTER INSERT ON agents
	REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER agents_count_deleted AFTER DELETE ON agents
	REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE CONSTRAINT TRIGGER agents_quota AFTER INSERT ON agents DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION check_quota_last();
CREATE TRIGGER files_count_new AFTER INSERT ON files
	REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER files_count_deleted AFTER DELETE ON files
	REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER files_count_resized AFTER UPDATE OF size_bytes ON files
	FOR EACH ROW EXECUTE FUNCTION count_resized('documents');
CREATE CONSTRAINT TRIGGER files_quota AFTER INSERT ON files DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION check_quota_last();
CREATE TRIGGER messages_count_new AFTER INSERT ON messages
	REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER messages_count_deleted AFTER DELETE ON messages
	REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER messages_count_resized AFTER UPDATE OF content ON messages
	FOR EACH ROW EXECUTE FUNCTION count_resized('messages');
CREATE TRIGGER passages_count_new AFTER INSERT ON passages
	REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER passages_count_deleted AFTER DELETE ON passages
	REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER passages_count_resized AFTER UPDATE OF text ON passages
	FOR EACH ROW EXECUTE FUNCTION count_resized('passages');
CREATE TRIGGER blobs_count_new AFTER INSERT ON blobs
	REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER blobs_count_deleted AFTER DELETE ON blobs
	REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER blobs_count_resized AFTER UPDATE OF size_bytes ON blobs
	FOR EACH ROW EXECUTE FUNCTION count_resized('long_results');
CREATE TRIGGER block_versions_count_new AFTER INSERT ON block_versions
	REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER block_versions_count_deleted AFTER DELETE ON block_versions
	REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER block_versions_count_resized AFTER UPDATE OF value ON block_versions
	FOR EACH ROW EXECUTE FUNCTION count_resized('block_versions');
CREATE TRIGGER memory_file_versions_count_new AFTER INSERT ON memory_file_versions
	REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER memory_file_versions_count_deleted AFTER DELETE ON memory_file_versions
	REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION count_stored();
CREATE TRIGGER memory_file_versions_count_resized AFTER UPDATE OF content ON memory_file_versions
	FOR EACH ROW EXECUTE FUNCTION count_resized('memory_file_versions');

-- What is stored already. The triggers above have locked the tables against changes.
INSERT INTO stored_usage (org, kind, items, bytes)
SELECT org, 'agents', count(*), 0 FROM agents GROUP BY org
UNION ALL
SELECT org, 'documents', count(*), sum(size_bytes) FROM files GROUP BY org
UNION ALL
SELECT org, 'messages', count(*), sum(octet_length(content::text)) FROM messages GROUP BY org
UNION ALL
SELECT org, 'passages', count(*), sum(octet_length(text)) FROM passages GROUP BY org
UNION ALL
SELECT org, 'long_results', count(*), sum(size_bytes) FROM blobs GROUP BY org
UNION ALL
SELECT org, 'block_versions', count(*), sum(octet_length(value)) FROM block_versions GROUP BY org
UNION ALL
SELECT org, 'memory_file_versions', count(*), sum(coalesce(octet_length(content), 0)) FROM memory_file_versions GROUP BY org;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
