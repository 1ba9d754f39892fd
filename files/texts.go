package files

import (
	"context"

	"github.com/loci-memory/loci/db"
)

// textFile is an attached file whose text can be searched.
type textFile struct {
	Key        int64  `db:"key"`
	ID         string `db:"id"`
	Name       string `db:"name"` // folder/name
	Generation int    `db:"generation"`
	Chars      int64  `db:"chars"`
	Indexed    bool   `db:"indexed"` // in the index of n-grams
}

// texts are the files of an agent, by name, narrowed to those that include fits.
type texts struct {
	attached int
	ready    []textFile
	waiting  int // fit, but have no text yet
}

func (s *Store) texts(ctx context.Context, org db.Org, agentID, include string) (texts, error) {
	fits, err := CompileInclude(include)
	if err != nil {
		return texts{}, err
	}
	all, err := db.All[textFile](ctx, s.db, textRows+`
		ORDER BY (d.name || '/' || f.name) COLLATE "C", f.key`, org, agentID)
	if err != nil {
		return texts{}, err
	}
	t := texts{attached: len(all)}
	for _, f := range all {
		switch {
		case !fits(f.Name):
		case f.Generation == 0:
			t.waiting++
		default:
			t.ready = append(t.ready, f)
		}
	}
	return t, nil
}

// List lists an agent's attached files by name, those that the pattern (a glob or a regular expression on folder/name) fits and that
// are in the named folder; both may be empty.
func (s *Store) List(ctx context.Context, org db.Org, agentID, pattern, folder string, offset, limit int) (Listing, error) {
	fits, err := CompileInclude(pattern)
	if err != nil {
		return Listing{}, err
	}
	names, err := db.All[string](ctx, s.db, `
		SELECT d.name || '/' || f.name AS name
		FROM agent_folders a JOIN folders d ON d.key = a.folder_key JOIN files f ON f.folder_key = a.folder_key AND f.replaces IS NULL
		WHERE a.org = $1 AND f.org = $1 AND a.agent_id = $2 AND ($3 = '' OR d.name = $3)
		ORDER BY (d.name || '/' || f.name) COLLATE "C", f.key`, org, agentID, folder)
	if err != nil {
		return Listing{}, err
	}
	var page []string
	total := 0
	for _, name := range names {
		if !fits(name) {
			continue
		}
		if total >= offset && len(page) < limit {
			page = append(page, name)
		}
		total++
	}
	list, err := s.listed(ctx, org, agentID, page)
	return Listing{Files: list, Total: total}, err
}

func (s *Store) listed(ctx context.Context, org db.Org, agentID string, names []string) ([]Listed, error) {
	if len(names) == 0 {
		return []Listed{}, nil
	}
	args := s.fileArgs(org, false)
	args["agent"], args["names"] = agentID, names
	return db.All[Listed](ctx, s.db, `
		WITH shown AS NOT MATERIALIZED (`+fileRows+`)
		SELECT d.name || '/' || f.name AS file_name, f.status, f.media_type, f.size_bytes, f.lines, coalesce(o.is_open, false) AS is_open
		FROM shown f
		JOIN folders d ON d.id = f.folder_id
		JOIN agent_folders a ON a.folder_key = d.key AND a.agent_id = @agent
		LEFT JOIN agent_files o ON o.org = @org AND o.agent_id = @agent AND o.file_key = f.key
		WHERE d.name || '/' || f.name = ANY (@names)
		ORDER BY (d.name || '/' || f.name) COLLATE "C", f.key`, args)
}
