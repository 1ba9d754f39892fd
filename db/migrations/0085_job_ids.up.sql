-- Makes the ids of an organization's jobs: no number of theirs counts the jobs of others.
ALTER TABLE organizations ADD COLUMN job_salt uuid NOT NULL DEFAULT gen_random_uuid();

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
