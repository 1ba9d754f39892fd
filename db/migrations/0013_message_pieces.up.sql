-- The words of the texts of messages that are too long for one vector, in pieces; the row of the message has those of the first. searched_messages
-- is what a search by words reads. A piece has the position 0 there: the model does not see all of a long text even if it sees its message.
CREATE TABLE message_pieces (
	key              bigint              GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	org              integer             NOT NULL,
	message_key      bigint              NOT NULL REFERENCES messages (key) ON DELETE CASCADE,
	agent_key        bigint              NOT NULL,
	conversation_key bigint              NOT NULL,
	role             text                NOT NULL,
	created_at       timestamptz         NOT NULL,
	lex              sparsevec(16777216) NOT NULL,
	terms            bigint[]            NOT NULL
);
CREATE INDEX message_pieces_message ON message_pieces (message_key);
CREATE INDEX message_pieces_scope ON message_pieces (agent_key, conversation_key);
CREATE INDEX message_pieces_terms ON message_pieces USING gin (terms);

CREATE VIEW searched_messages AS
	SELECT key, org, agent_key, conversation_key, position, role, created_at, lex, terms FROM messages
	UNION ALL
	SELECT message_key, org, agent_key, conversation_key, 0, role, created_at, lex, terms FROM message_pieces;

-- Last in each file, in its transaction: a schema marked dirty is one whose file was not applied.
UPDATE schema_migrations SET dirty = false;
