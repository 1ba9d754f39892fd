package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
)

// usage is the size of a view, counted when a step first asks for it.
type usage struct {
	tokens  int
	counted bool
}

// of returns the tokens of a view: counted by the caller, or by usage if counted is 0.
func (u *usage) of(counted int, v clip.View) int {
	if !u.counted {
		if u.tokens, u.counted = counted, true; counted <= 0 {
			u.tokens = clip.Estimate(v)
		}
	}
	return u.tokens
}
