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
