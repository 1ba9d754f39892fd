-- A row says that a key was made: every request needs one from then on, though the last key be revoked.
CREATE TABLE keys_required (
	required boolean PRIMARY KEY,
	CONSTRAINT keys_required_once CHECK (required)
);
INSERT INTO keys_required SELECT true WHERE EXISTS (SELECT FROM api_keys);
