package recall

import (
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

// addContext marks hits that were found only because they are near other hits. If explain is set, it adds how each hit
// was ranked.
func (r *Results) addContext(all []candidate, ranking rank.Ranking, explain bool) {
	isContext, byKey := contextOf(all, ranking), keyed(all)
	for i := range r.Hits {
		h := &r.Hits[i]
		if h.Context = isContext(*h); explain {
			h.Explanation = ranking.ExplainHit(h.Key, Searched(h.Message), byKey[h.Key].Gains.boosts()...)
		}
	}
	if !explain {
		return
	}
	r.Explanation = ranking.Explanation()
	if len(r.Hits) > 0 {
		r.Hits[0].Explanation.Search = r.Explanation
	}
}
