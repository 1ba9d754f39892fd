package files

import (
	"context"
	"encoding/hex"
	"strings"

	"github.com/loci-memory/loci/db"
)

// Hashes maps the names of an agent's files, which begin with their folders' names, to the SHA-256 of their originals
// in hexadecimal digits. Files that are not within the reach are left out.
func (s *Store) Hashes(ctx context.Context, org db.Org, r Reach, names []string) (map[string]string, error) {
	var within []string // possible names of the files within their folders
	for _, name := range names {
		for i, r := range name {
			if r == '/' {
				within = append(within, strings.Clone(name[i+1:]))
			}
		}
	}
	if len(within) == 0 {
		return nil, nil
	}
	type row struct {
		Name   string `db:"name"`
		SHA256 []byte `db:"sha256"`
	}
	sees, args := r.sees(org, r.AgentID, within, names)
	rows, err := db.All[row](ctx, s.db, `
		SELECT d.name || '/' || f.name AS name, f.sha256
		FROM agent_folders a JOIN folders d ON d.org = a.org AND d.key = a.folder_key
		JOIN files f ON f.folder_key = a.folder_key AND f.replaces IS NULL
		WHERE a.org = $1 AND d.org = $1 AND f.org = $1 AND a.agent_id = $2 AND f.name = ANY ($3)
		  AND d.name || '/' || f.name = ANY ($4) AND `+sees+`
		ORDER BY f.key`, args...)
	hashes := make(map[string]string, len(rows))
	for _, r := range rows {
		hashes[r.Name] = hex.EncodeToString(r.SHA256)
	}
	return hashes, err
}
