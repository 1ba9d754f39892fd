-- What the gateway does with the requests of a key that name no mode; null: as the agent says, or the server.
ALTER TABLE api_keys ADD COLUMN gateway_mode text;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_gateway_mode CHECK (gateway_mode IN ('observe', 'remember', 'manage'));

-- What an organization may ask of providers in a day, in UTC, with the server's own credential; null is no limit.
ALTER TABLE quotas ADD COLUMN gateway_requests_per_day bigint;
ALTER TABLE quotas ADD COLUMN gateway_tokens_per_day bigint;
ALTER TABLE quotas ADD CONSTRAINT quotas_gateway_requests CHECK (gateway_requests_per_day >= 0);
ALTER TABLE quotas ADD CONSTRAINT quotas_gateway_tokens CHECK (gateway_tokens_per_day >= 0);

-- What it asked: requests, and the tokens of their prompts and answers by the providers' counts.
CREATE TABLE gateway_counts (
	org      integer NOT NULL,
	day      date    NOT NULL,
	requests bigint  NOT NULL,
	tokens   bigint  NOT NULL,
	PRIMARY KEY (org, day),
	CONSTRAINT gateway_counts_org FOREIGN KEY (org) REFERENCES organizations (org) ON DELETE CASCADE
);

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
