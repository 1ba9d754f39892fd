-- Memories of users. A user is an identity; user_key is NULL where a memory is nobody's own. No reference deletes a
-- memory or makes it nobody's together with its user: who deletes an identity deletes its memories first.

-- The archives of users, and the same of their attachments: what an agent inserts in a conversation with a user goes to
-- the oldest of that user's archives that the agent has.
ALTER TABLE archives ADD COLUMN user_key bigint;
ALTER TABLE archives ADD CONSTRAINT archives_user FOREIGN KEY (org, user_key) REFERENCES identities (org, key);
CREATE INDEX archives_of_users ON archives (org, user_key);
ALTER TABLE agent_archives ADD COLUMN user_key bigint;
ALTER TABLE agent_archives ADD CONSTRAINT agent_archives_user
	FOREIGN KEY (org, user_key) REFERENCES identities (org, key);
CREATE INDEX agent_archives_of_users ON agent_archives (org, agent_id, user_key);

-- Blocks of users: a user's copy of a block of an agent, which is made when it is first written in a conversation with
-- that user.
ALTER TABLE blocks ADD COLUMN template_key bigint;
ALTER TABLE blocks ADD COLUMN user_key bigint;
ALTER TABLE blocks ADD CONSTRAINT blocks_copies CHECK (template_key IS NULL OR user_key IS NOT NULL);
ALTER TABLE blocks ADD CONSTRAINT blocks_template FOREIGN KEY (org, template_key) REFERENCES blocks (org, key);
ALTER TABLE blocks ADD CONSTRAINT blocks_user FOREIGN KEY (org, user_key) REFERENCES identities (org, key);
CREATE UNIQUE INDEX blocks_of_users ON blocks (org, template_key, user_key) WHERE template_key IS NOT NULL;
CREATE INDEX blocks_by_user ON blocks (org, user_key) WHERE user_key IS NOT NULL;

-- The memory files that an agent keeps for a user: a tree of the user's own, which begins as a copy of the agent's when it
-- is first written in a conversation with that user.
CREATE TABLE user_memory_trees (
	org         integer     NOT NULL,
	agent_id    text        NOT NULL,
	user_key    bigint      NOT NULL,
	tree_key    bigint      NOT NULL,
	attached_at timestamptz NOT NULL DEFAULT clock_timestamp(),
	PRIMARY KEY (org, agent_id, user_key),
	CONSTRAINT user_memory_trees_agent FOREIGN KEY (org, agent_id) REFERENCES agents (org, id) ON DELETE CASCADE,
	CONSTRAINT user_memory_trees_user FOREIGN KEY (org, user_key) REFERENCES identities (org, key),
	CONSTRAINT user_memory_trees_tree FOREIGN KEY (org, tree_key)
		REFERENCES memory_trees (org, key) ON DELETE CASCADE
);
CREATE INDEX user_memory_trees_tree ON user_memory_trees (org, tree_key);
CREATE INDEX user_memory_trees_user ON user_memory_trees (org, user_key);

-- A key that is bound to a user reads and writes only that user's memories, and those of nobody. The identity is named
-- without a reference, because keys are in a table of all organizations.
ALTER TABLE api_keys ADD COLUMN user_id text;
ALTER TABLE api_keys ADD COLUMN user_key bigint;
ALTER TABLE api_keys ADD CONSTRAINT api_keys_user
	CHECK ((user_id IS NULL) = (user_key IS NULL) AND (user_id IS NULL OR scopes = '{tools}'));

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
