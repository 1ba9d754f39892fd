-- What a key may do, until when, and how much at once. Keys of earlier versions keep what they could do: everything in
-- their organization, and the operator's the organizations.
ALTER TABLE api_keys
	ADD COLUMN scopes              text[]  NOT NULL DEFAULT '{write}',
	ADD COLUMN agent_ids           text[]  NOT NULL DEFAULT '{}', -- of the scope tools
	ADD COLUMN expires_at          timestamptz,
	ADD COLUMN last_used_at        timestamptz, -- written at most once a minute
	ADD COLUMN requests_per_minute integer,
	ADD COLUMN requests_at_once    integer;
UPDATE api_keys SET scopes = '{admin}' WHERE operator;
ALTER TABLE api_keys
	ADD CONSTRAINT api_keys_scopes_known
		CHECK (cardinality(scopes) > 0 AND scopes <@ '{read,tools,write,admin}'),
	ADD CONSTRAINT api_keys_tools_of_agents CHECK (('tools' = ANY (scopes)) = (cardinality(agent_ids) > 0)),
	ADD CONSTRAINT api_keys_operator_is_admin CHECK (NOT operator OR 'admin' = ANY (scopes)),
	ADD CONSTRAINT api_keys_limits_positive CHECK (requests_per_minute > 0 AND requests_at_once > 0);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
