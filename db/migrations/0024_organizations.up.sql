-- A deleted organization has no keys, and its name is free. Its rows are deleted in the background, the row here last.
ALTER TABLE organizations
	ADD COLUMN deleted_at timestamptz,
	DROP CONSTRAINT organizations_name_key;
CREATE UNIQUE INDEX organizations_name_key ON organizations (name) WHERE deleted_at IS NULL;

-- Keys of the operator manage the organizations over REST.
ALTER TABLE api_keys ADD COLUMN operator boolean NOT NULL DEFAULT false;

-- These rows refer to nothing else of their organization.
DELETE FROM deleted_places d WHERE NOT EXISTS (SELECT FROM organizations o WHERE o.org = d.org);
ALTER TABLE deleted_places
	ADD CONSTRAINT deleted_places_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE;
ALTER TABLE model_factors
	ADD CONSTRAINT model_factors_org_fkey FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
