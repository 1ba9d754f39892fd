package recall

import (
	"github.com/loci-memory/loci/embed/rank"
)

// addContext marks hits that were found only because they are near other hits. If explain is set, it adds how each hit
// was ranked.
func (r *Results) addContext(all []candidate, ranking rank.Ranking, explain bool) {
	byKey := make(map[int64]candidate, len(all))
	for _, c := range all {
		byKey[c.Key] = c
	}
	for i := range r.Hits {
		h := &r.Hits[i]
		c := byKey[h.Key]
		hasQuery := ranking.ByWords && ranking.Query.In(Searched(h.Message)) // also for hits below the ranked ones
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
