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
// at most maxSimilar. It returns none for a duplicate, which is named already.
func (s *Store) Similar(ctx context.Context, org db.Org, p Inserted) ([]Similar, error) {
	if p.Duplicate || s.similar > 1 {
		return nil, nil
	}
	text := db.Beginning(p.Text, similarBytes)
	found, err := s.Search(ctx, org, Query{Text: text, ArchiveID: p.ArchiveID, Users: db.AllUsers(), Limit: 2 * maxSimilar,
		AsWritten: true})
	if err != nil {
		return nil, err
	}
	cosines, err := s.cosines(ctx, org, text, found)
	if err != nil {
		return nil, err
	}
	terms := lexicon.DocumentIn(text, p.given()).Terms
	var all []Similar
	for _, h := range found.Hits {
		similarity := max(cosines[h.Key], shared(terms, lexicon.DocumentIn(db.Beginning(h.Text, similarBytes),
			h.given()).Terms))
		if h.ID != p.ID && similarity >= s.similar && len(all) < maxSimilar {
			all = append(all, Similar{h.ID, db.Beginning(h.Text, 200), similarity})
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
