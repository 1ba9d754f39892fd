package userdata

import "slices"

// kind is a kind of items that a user may have. sql selects all of a user's items: id, of, name, text, deleted and
// created_at. The organization is @org, and the key of the user's identity @user.
type kind struct{ name, sql string }

// kinds are listed in this order: what is written about a person comes first, then the long log.
var kinds = []kind{
	{"block", `
		SELECT b.id, (SELECT t.id FROM blocks t WHERE t.org = @org AND t.key = b.template_key) AS of, b.label AS name,
		       b.value AS text, false AS deleted, b.created_at
		FROM blocks b WHERE b.org = @org AND b.user_key = @user`},
	{"block_version", `
		SELECT b.id || ':' || v.version AS id, b.id AS of, v.label AS name, v.value AS text, false AS deleted,
		       v.at AS created_at
		FROM blocks b JOIN block_versions v ON v.org = @org AND v.block_key = b.key
		WHERE b.org = @org AND b.user_key = @user`},
	{"memory_file", `
		SELECT f.id, t.id AS of, f.path AS name, f.content AS text, f.deleted_at IS NOT NULL AS deleted, f.created_at
		FROM user_memory_trees x JOIN memory_trees t ON t.org = @org AND t.key = x.tree_key
		JOIN memory_files f ON f.org = @org AND f.tree_key = t.key
		WHERE x.org = @org AND x.user_key = @user`},
	{"memory_file_version", `
		SELECT f.id || ':' || v.version AS id, f.id AS of, v.path AS name, v.content AS text, false AS deleted,
		       v.at AS created_at
		FROM user_memory_trees x JOIN memory_files f ON f.org = @org AND f.tree_key = x.tree_key
		JOIN memory_file_versions v ON v.org = @org AND v.file_key = f.key
		WHERE x.org = @org AND x.user_key = @user`},
	{"archive", `
		SELECT c.id, NULL::text AS of, c.name, c.description AS text, c.deleted_at IS NOT NULL AS deleted, c.created_at
		FROM archives c WHERE c.org = @org AND c.user_key = @user`},
	{"passage", `
		SELECT 'passage-' || p.id AS id, c.id AS of, NULL::text AS name, p.text, c.deleted_at IS NOT NULL AS deleted,
		       p.created_at
		FROM archives c JOIN passages p ON p.org = @org AND p.archive_key = c.key
		WHERE c.org = @org AND c.user_key = @user`},
	{"folder", `
		SELECT d.id, NULL::text AS of, d.name, d.description AS text, d.deleted_at IS NOT NULL AS deleted, d.created_at
		FROM folders d WHERE d.org = @org AND d.user_key = @user`},
	{"file", `
		SELECT f.id, d.id AS of, f.name, NULL::text AS text, d.deleted_at IS NOT NULL AS deleted, f.created_at
		FROM folders d JOIN files f ON f.org = @org AND f.folder_key = d.key AND f.replaces IS NULL
		WHERE d.org = @org AND d.user_key = @user`},
	{"conversation", `
		SELECT c.id, a.id AS of, c.summary AS name, c.description AS text, c.deleted_at IS NOT NULL AS deleted,
		       c.created_at
		FROM conversation_identities x JOIN conversations c ON c.org = @org AND c.key = x.conversation_key
		LEFT JOIN agents a ON a.org = @org AND a.key = c.agent_key
		WHERE x.org = @org AND x.identity_key = @user`},
	{"working_memory", `
		SELECT c.id, a.id AS of, NULL::text AS name, w.record::text AS text, c.deleted_at IS NOT NULL AS deleted,
		       w.updated_at AS created_at
		FROM conversation_identities x JOIN conversations c ON c.org = @org AND c.key = x.conversation_key
		JOIN working_memories w ON w.org = @org AND w.conversation_key = c.key
		LEFT JOIN agents a ON a.org = @org AND a.key = c.agent_key
		WHERE x.org = @org AND x.identity_key = @user`},
	{"message", `
		SELECT 'message-' || m.id AS id, c.id AS of, m.role AS name, (
		           SELECT string_agg(coalesce(part ->> 'text', part ->> 'input'), E'\n')
		           FROM json_array_elements(m.content) part) AS text,
		       c.deleted_at IS NOT NULL AS deleted, m.created_at
		FROM conversation_identities x JOIN conversations c ON c.org = @org AND c.key = x.conversation_key
		JOIN messages m ON m.org = @org AND m.conversation_key = c.key
		WHERE x.org = @org AND x.identity_key = @user`},
}

// Kinds returns the names of the kinds, in the order in which items are listed.
func Kinds() []string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = k.name
	}
	return names
}

// isBefore reports whether the kind comes before the named one; nothing is before the empty name.
func (k kind) isBefore(name string) bool {
	all := Kinds()
	return slices.Index(all, k.name) < slices.Index(all, name)
}
