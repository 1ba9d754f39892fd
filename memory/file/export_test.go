package file

import (
	"context"
	"time"

	"github.com/loci-memory/loci/db"
)

// Compressed returns the files that a proposal for an index would have, in a tree without files.
func Compressed(text string, topics []Topic) ([]ProposedFile, error) {
	w, err := newGrown(Grown{manifest: defaultManifest}, text).sort(topics)
	if err != nil {
		return nil, err
	}
	return w.files()
}

// Breaches returns the rules that an index breaks in a tree with these files.
func Breaches(content string, files []ProposedFile) (rules []string) {
	var others []File
	for _, f := range files {
		others = append(others, File{Entry: Entry{Path: f.Path}, Content: f.Content})
	}
	for _, v := range checkIndex(IndexRules{}, defaultManifest, content, others) {
		rules = append(rules, v.Rule)
	}
	return rules
}

// SameFact reports whether two lines say the same.
func SameFact(one, other string) bool {
	a, b := factsOf("a", 1, one), factsOf("b", 1, other)
	return len(a) == 1 && len(b) == 1 && a[0].same(b[0])
}

// SetSettle sets how long an embedding job waits for more writes.
func (s *Store) SetSettle(d time.Duration) { s.settle = d }

// EmbedOnce runs a tree's embedding job until nothing is left or the endpoint fails.
func EmbedOnce(s *Store, ctx context.Context, org db.Org, tree string) error {
	t, err := s.Tree(ctx, org, tree)
	if err != nil {
		return err
	}
	q := s.Queue()
	space, _ := s.search.Endpoint.Space()
	for more := true; more && err == nil; {
		more, err = q.Once(ctx, job{Org: org, Owner: t.Key}, space)
	}
	return err
}
