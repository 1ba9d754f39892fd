package archival

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
)

// Limits of what is named as similar.
const (
	maxSimilar   = 3
	similarBytes = 2_000 // of a text that similar ones are searched for
)

// Similar is a passage that says nearly what another one says.
type Similar struct {
	ID         string  `json:"id"`
	Text       string  `json:"text" doc:"Its beginning, at most 200 bytes."`
	Similarity float64 `json:"similarity" doc:"From 0 to 1: of their words or, if that is more, of their vectors."`
}

// Similar returns the passages of the same archive that hold now and are similar to a new one, the most similar first,
// at most maxSimilar. It returns none for a duplicate, which is named already. It asks for a vector and uses several
// connections, so it must not run in a transaction: there a Lookalikes from before it says the same.
func (s *Store) Similar(ctx context.Context, org db.Org, p Inserted) ([]Similar, error) {
	if p.Duplicate {
		return nil, nil
	}
	found, err := s.lookalikes(ctx, org, Query{ArchiveID: p.ArchiveID, Users: db.AllUsers()}, p.Text, p.given())
	return found.To(p), err
}

// Lookalikes are passages that are similar to a text, the most similar first.
type Lookalikes []lookalike

type lookalike struct {
	Similar
	archive string // its id
}

// Lookalikes returns the passages within reach that hold now and are similar to a text that is not stored yet.
func (s *Store) Lookalikes(ctx context.Context, org db.Org, r Reach, text string) (Lookalikes, error) {
	return s.lookalikes(ctx, org, Query{AgentID: r.AgentID, Users: r.Users}, text, "")
}

// To returns those that are in the archive of a new passage, at most maxSimilar, and none for a duplicate.
func (l Lookalikes) To(p Inserted) (all []Similar) {
	for _, found := range l {
		if !p.Duplicate && found.archive == p.ArchiveID && found.ID != p.ID && len(all) < maxSimilar {
			all = append(all, found.Similar)
		}
	}
	return all
}

// lookalikes completes a query by a text and returns what is similar to it. language is the text's; empty: it is found.
func (s *Store) lookalikes(ctx context.Context, org db.Org, q Query, text, language string) (Lookalikes, error) {
	if s.similar > 1 {
		return nil, nil
	}
	q.Text, q.Limit, q.AsWritten = db.Beginning(text, similarBytes), 2*maxSimilar, true
	found, err := s.Search(ctx, org, q)
	if err != nil {
		return nil, err
	}
	cosines, err := s.cosines(ctx, org, q.Text, found)
	if err != nil {
		return nil, err
	}
	terms := lexicon.DocumentIn(q.Text, language).Terms
	var all Lookalikes
	for _, h := range found.Hits {
		similarity := max(cosines[h.Key], shared(terms, lexicon.DocumentIn(db.Beginning(h.Text, similarBytes),
			h.given()).Terms))
		if similarity >= s.similar {
			all = append(all, lookalike{Similar{h.ID, db.Beginning(h.Text, 200), similarity}, h.ArchiveID})
		}
	}
	return all, nil
}

// shared returns the share of the terms of two texts that both have, from 0 to 1 (Dice's coefficient).
func shared(a, b []int32) float64 {
	in := make(map[int32]bool, len(a))
	for _, t := range a {
		in[t] = true
	}
	both := 0
	for _, t := range b {
		if in[t] {
			both++
		}
	}
	return 2 * float64(both) / float64(max(len(a)+len(b), 1))
}

// cosines returns the cosines of a text's vector and those of hits, by the hits' keys; none if there is no vector.
func (s *Store) cosines(ctx context.Context, org db.Org, text string, found Results) (map[int64]float64, error) {
	if !found.ByMeaning || len(found.Hits) == 0 {
		return nil, nil //nolint:nilnil // no cosine is known
	}
	vector, space, _ := s.endpoint.EmbedQuery(ctx, text)
	if vector == nil {
		return nil, nil //nolint:nilnil // as above
	}
	keys := make([]int64, len(found.Hits))
	for i, h := range found.Hits {
		keys[i] = h.Key
	}
	type row struct {
		Key    int64   `db:"passage_key"`
		Cosine float64 `db:"cosine"`
	}
	rows, err := db.All[row](ctx, s.db, fmt.Sprintf(`
		SELECT passage_key, -(embedding::halfvec(%d) <#> @q::halfvec(%[1]d)) AS cosine FROM passage_vectors
		WHERE org = @org AND passage_key = ANY (@keys) AND space_id = %d`, space.Dimension, space.ID),
		pgx.StrictNamedArgs{"org": org, "keys": keys, "q": *vector})
	cosines := make(map[int64]float64, len(rows))
	for _, r := range rows {
		cosines[r.Key] = r.Cosine
	}
	return cosines, err
}
