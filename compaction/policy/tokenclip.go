package policy

import (
	"github.com/loci-memory/loci/compaction/clip"
)

// TokenClip shows the beginning and the end of each result with more than MaxTokens.
type TokenClip struct {
	MaxTokens int      `json:"max_tokens" min:"64" max:"1000000"`
	HeadShare float64  `json:"head_share" min:"0" max:"1"`
	Except    []string `json:"exempt_tools"`
}

func (*TokenClip) describe() Mechanism {
	return Mechanism{Name: "token_clip", Stage: Enter, Source: "deck, lever 1",
		Words: "Shows the beginning and the end of results that take many tokens.",
		Settings: map[string]string{
			"max_tokens":   "What a result takes at most, with the note on what is left out.",
			"head_share":   "What the beginning gets of the characters beside the note; the end gets the rest.",
			"exempt_tools": "Tools whose results are shown whole, with * for any characters.",
		},
		New: func() Step { return &TokenClip{MaxTokens: 1500, HeadShare: 0.6, Except: []string{"expand"}} }}
}

// noteTokens is about the length of the note on a clip.
const noteTokens = 48

// Edits clips results.
func (c *TokenClip) Edits(v clip.View, _ Moment) (edits []clip.Edit) {
	for r := range results(v) {
		if r.edit != nil || len(r.p.Text) <= c.MaxTokens || !selects(nil, c.Except, r.tool()) {
			continue
		}
		if n := r.tokens(v); n >= c.MaxTokens+noteTokens { // a shorter clip would be mostly note
			edits = append(edits, c.clip(v, r, n))
		}
	}
	return edits
}

// clip returns a clip within the bound that is close to the longest. It guesses, and then halves the guess's error.
func (c *TokenClip) clip(v clip.View, r result, n int) (best clip.Edit) {
	fits, tooMany := 0, r.chars() // in characters
	chars := tooMany * max(c.MaxTokens-noteTokens, 0) / n
	for {
		head := int(c.HeadShare * float64(chars))
		e := r.headAndTail("token_clip", head, chars-head)
		takes := v.PartTokens(*r.m, r.part, &e)
		if takes <= c.MaxTokens || chars == 0 {
			if best, fits = e, chars; v.Count == nil {
				best.Tokens = takes
			}
			if c.MaxTokens-takes <= c.MaxTokens/50 || tooMany-chars <= 1 {
				return best
			}
		} else {
			tooMany = chars
		}
		if chars = fits + (tooMany-fits)/2; chars <= fits {
			return best
		}
	}
}
