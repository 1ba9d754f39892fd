-- An erasure of all that is a user's own names the user by the identity's id.
ALTER TABLE erasures ADD COLUMN user_id text;

-- Folders of users: an agent's files in a conversation with a user are those of nobody's folders and of the user's own.
ALTER TABLE folders ADD COLUMN user_key bigint;
ALTER TABLE folders ADD CONSTRAINT folders_user FOREIGN KEY (org, user_key) REFERENCES identities (org, key);
CREATE INDEX folders_of_users ON folders (org, user_key) WHERE user_key IS NOT NULL;

ALTER TABLE agent_folders ADD COLUMN user_key bigint;
ALTER TABLE agent_folders ADD CONSTRAINT agent_folders_user FOREIGN KEY (org, user_key) REFERENCES identities (org, key);
CREATE INDEX agent_folders_of_users ON agent_folders (org, agent_id, user_key);

-- The files that an agent has open in the conversations with each user; 0 is nobody. A user without rows sees those of
-- nobody, which are copied when the first file is opened or closed for the user.
ALTER TABLE agent_files ADD COLUMN user_key bigint NOT NULL DEFAULT 0;
ALTER TABLE agent_files DROP CONSTRAINT agent_files_pkey;
ALTER TABLE agent_files ADD CONSTRAINT agent_files_pkey PRIMARY KEY (org, agent_id, user_key, file_key);
CREATE INDEX agent_files_of_users ON agent_files (org, user_key) WHERE user_key <> 0;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
