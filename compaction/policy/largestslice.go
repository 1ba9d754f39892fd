package policy

import (
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
)

// LargestSlice shows as many rows of each result as fit.
type LargestSlice struct {
	BudgetTokens int      `json:"budget_tokens" min:"64" max:"10000000"`
	Except       []string `json:"exempt_tools"`
}

func (*LargestSlice) describe() Mechanism {
	return Mechanism{Name: "largest_slice", Stage: Enter, Source: "Alyx",
		Words: "Shows as many rows of long results as fit: the items of a JSON list, or lines. Of a failed result it shows " +
			"the beginning and the end.",
		Settings: map[string]string{
			"budget_tokens": "What a result takes at most, with the note on what is left out.",
			"exempt_tools":  "Tools whose results are shown whole, with * for any characters.",
		},
		New: func() Step { return &LargestSlice{BudgetTokens: 10_000, Except: []string{"expand"}} }}
}

// Edits clips results to whole rows.
func (s *LargestSlice) Edits(v clip.View, _ Moment) (edits []clip.Edit) {
	for r := range results(v) {
		if r.edit == nil && r.p.Clip == nil && len(r.p.Text) > s.BudgetTokens && selects(nil, s.Except, r.tool()) &&
			r.tokens(v) > s.BudgetTokens {
			edits = append(edits, s.edit(v, r))
		}
	}
	return edits
}

// edit returns the clip with the most rows that fit. If no row fits, or the end says why the call failed, it returns a
// clip with the beginning and the end.
func (s *LargestSlice) edit(v clip.View, r result) clip.Edit {
	if !r.failed() {
		if e, ok := s.slice(v, r); ok {
			return e
		}
	}
	clip := TokenClip{MaxTokens: s.BudgetTokens, HeadShare: 0.5}
	e := clip.clip(v, r, r.tokens(v))
	e.Step = "largest_slice"
	return e
}

// slice returns the clip with the most rows that fit; false if no row fits.
func (s *LargestSlice) slice(v clip.View, r result) (clip.Edit, bool) {
	ends := rowEnds(r.p.Text)
	clipTo := func(rows int) clip.Edit {
		e := r.head("largest_slice", utf8.RuneCountInString(r.p.Text[:ends[rows-1]]))
		e.Text = fmt.Sprintf("%d of %d rows", rows, len(ends))
		return e
	}
	tooMany := sort.Search(len(ends), func(i int) bool {
		e := clipTo(i + 1)
		return v.PartTokens(*r.m, r.part, &e) > s.BudgetTokens
	})
	if tooMany == 0 {
		return clip.Edit{}, false
	}
	return clipTo(tooMany), true
}

// rowEnds returns the byte offsets where rows of a text end: the items of a JSON list, or lines.
func rowEnds(text string) (ends []int) {
	if ends = itemEnds(text); len(ends) > 0 {
		return ends
	}
	for i := 0; i < len(text); {
		n := strings.IndexByte(text[i:], '\n')
		if n < 0 {
			return append(ends, len(text))
		}
		i += n + 1
		ends = append(ends, i)
	}
	return ends
}

// itemEnds returns where the items of a JSON list end, including the comma and line end behind each.
func itemEnds(text string) (ends []int) {
	if !strings.HasPrefix(strings.TrimSpace(text), "[") {
		return nil
	}
	d := json.NewDecoder(strings.NewReader(text))
	if _, err := d.Token(); err != nil {
		return nil
	}
	for d.More() {
		var item json.RawMessage
		if d.Decode(&item) != nil {
			return nil
		}
		end := int(d.InputOffset())
		rest := text[end:]
		rest = strings.TrimPrefix(strings.TrimLeft(rest, " "), ",")
		rest = strings.TrimPrefix(rest, "\n")
		ends = append(ends, len(text)-len(rest))
	}
	if _, err := d.Token(); err != nil {
		return nil
	}
	return ends
}
