package recall

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/rank"
)

// keyed maps the key of each candidate → the candidate.
func keyed(all []candidate) map[int64]candidate {
	byKey := make(map[int64]candidate, len(all))
	for _, c := range all {
		byKey[c.Key] = c
	}
	return byKey
}

// contextOf returns a function that reports whether a hit shares nothing with the query, and stands near messages that
// do.
func contextOf(all []candidate, ranking rank.Ranking) func(Hit) bool {
	byKey := keyed(all)
	return func(h Hit) bool {
		c := byKey[h.Key]
		hasQuery := ranking.ByWords && ranking.Query.In(Searched(h.Message)) // also for hits below the ranked ones
		return h.WordsRank == 0 && c.Own.Meaning == 0 && c.Gains.date == 0 && !hasQuery
	}
}

// addContext marks hits that were found only because they are near other hits. If the query asks for it, it adds how
// each hit was ranked.
func (s *Store) addContext(ctx context.Context, f searchFilter, r *Results, all []candidate,
	ranking rank.Ranking) error {
	isContext, byKey := contextOf(all, ranking), keyed(all)
	for i, h := range r.Hits {
		r.Hits[i].Context = isContext(h)
	}
	if !f.q.Explain || len(all) == 0 {
		return nil
	}
	ids, err := s.neighborIDs(ctx, f.org, r.Hits, byKey)
	if err != nil {
		return err
	}
	r.Explanation = ranking.Explanation()
	for i, h := range r.Hits {
		c, text := byKey[h.Key], Searched(h.Message)
		if c.Passage != nil {
			text = c.Passage.text
		}
		gains := c.Gains.added()
		for _, n := range c.neighbors {
			gains = append(gains, rank.Added{Of: "neighbor", Name: ids[n.key], Value: n.value})
		}
		r.Hits[i].Explanation = ranking.ExplainHit(rank.Ranked{Key: h.Key, Text: text, Score: h.Score,
			Scale: ranking.Calibrated(1, all[0].Score), Gains: gains})
	}
	if len(r.Hits) > 0 {
		r.Hits[0].Explanation.Search = r.Explanation
	}
	return nil
}

// neighborIDs returns key → id of the messages that added to the scores of hits.
func (s *Store) neighborIDs(ctx context.Context, org db.Org, hits []Hit, byKey map[int64]candidate) (map[int64]string,
	error) {
	type row struct {
		Key int64  `db:"key"`
		ID  string `db:"id"`
	}
	var keys []int64
	for _, h := range hits {
		for _, n := range byKey[h.Key].neighbors {
			keys = append(keys, n.key)
		}
	}
	rows, err := db.All[row](ctx, s.db, `
		SELECT key, 'message-' || id AS id FROM messages WHERE org = $1 AND key = ANY ($2)`, org, keys)
	ids := make(map[int64]string, len(rows))
	for _, r := range rows {
		ids[r.Key] = r.ID
	}
	return ids, err
}
