package recall

import (
	"github.com/loci-memory/loci/embed/rank"
)

// addContext marks the hits that are only near what the query is about, and adds how the hits were ranked if the query
// asks for that.
func (r *Results) addContext(all []candidate, ranking rank.Ranking, explain bool) {
	byKey := make(map[int64]candidate, len(all))
	for _, c := range all {
		byKey[c.Key] = c
	}
	for i := range r.Hits {
		h := &r.Hits[i]
		c := byKey[h.Key]
		hasQuery := ranking.ByWords && ranking.Query.In(Searched(h.Message)) // even if below the ranked ones
		h.Context = h.WordsRank == 0 && c.Own.Meaning == 0 && c.Gains.date == 0 && !hasQuery
		if explain {
			h.Explanation = ranking.ExplainHit(h.Key, Searched(h.Message), c.Gains.boosts()...)
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
