package summary

import (
	"slices"

	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall/tokens"
)

// fill takes something for the sections of a format that other lines do not fill: what the user told, in at most most
// tokens, the newest call, and names, even if a line mentions them.
func (f *selection) fill(must prose.MustMention, most int) {
	if all := f.x.items[told]; len(all) > 0 {
		best := 0
		for n := range all {
			if all[n].score > all[best].score {
				best = n
			}
		}
		f.take(itemKey{told, best}, all[best].text, most)
	}
	if n := len(f.x.items[calls]) - 1; n >= 0 {
		f.take(itemKey{calls, n}, f.shortened(calls, f.x.items[calls][n].text, fillCall), fillCall)
	}
	if len(f.ids) > 0 {
		return
	}
	for _, id := range slices.Concat(must.Request, must.Others) {
		n := tokens.Estimate(id + ", ")
		if len(f.ids) == 0 {
			n += tokens.Estimate(f.layout.titles[named] + "\n- \n")
		}
		if len(f.ids) == fillNames || n > min(fillCall, f.left) {
			return
		}
		f.left -= n
		f.ids = append(f.ids, id)
		f.text += "\n" + prose.Folded(id)
	}
}

// Limits of fill: a call, or a name, in tokens; names; and the least budget in tokens.
const (
	fillCall   = 48
	fillNames  = 4
	leastForms = 512
)
