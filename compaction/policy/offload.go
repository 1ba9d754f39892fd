package policy

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/db"
)

// Offload shows a preview of each very long result.
type Offload struct {
	MaxResultChars  int      `json:"max_result_chars" min:"100" max:"10000000"`
	MaxMessageChars int      `json:"max_message_chars" min:"100" max:"100000000"`
	PreviewBytes    int      `json:"preview_bytes" min:"0" max:"1000000"`
	Except          []string `json:"exempt_tools"`
}

func (*Offload) describe() Mechanism {
	return Mechanism{Name: "offload", Stage: Enter, Source: "Claude Code",
		Words: "Shows the beginning of very long results; the tool expand reads on. Loci stores results outside the log on " +
			"its own from 50,000 characters, or 200,000 in a message.",
		Settings: map[string]string{
			"max_result_chars": "Longer results are shown as a preview.",
			"max_message_chars": "If the results of one message's calls together are longer, the longest of them are shown as " +
				"previews.",
			"preview_bytes": "What a preview shows of the beginning.",
			"exempt_tools": "Tools whose results are shown whole, with * for any characters. Else the tool that reads a " +
				"result on would be cut itself.",
		},
		New: func() Step {
			return &Offload{MaxResultChars: 50_000, MaxMessageChars: 200_000, PreviewBytes: 2000, Except: []string{"expand"}}
		}}
}

// Edits clips results to their previews.
func (o *Offload) Edits(v clip.View, _ Moment) (edits []clip.Edit) {
	var answer []result // results of the calls in one message, which may be in several
	flush := func() {
		edits = append(edits, o.ofAnswer(answer)...)
		answer = answer[:0]
	}
	for r := range results(v) {
		if len(answer) > 0 && answer[0].message != r.message && (r.caller < 0 || answer[0].caller != r.caller) {
			flush()
		}
		answer = append(answer, r)
	}
	flush()
	return edits
}

// ofAnswer returns the edits of the results of one message's calls.
func (o *Offload) ofAnswer(all []result) (edits []clip.Edit) {
	total := 0
	for _, r := range all {
		total += shownLength(r)
	}
	if total <= min(o.MaxResultChars, o.MaxMessageChars) {
		return nil
	}
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b result) int { return cmp.Compare(shownLength(b), shownLength(a)) })
	for _, r := range all {
		chars := shownLength(r)
		if chars <= o.MaxResultChars && total <= o.MaxMessageChars {
			break
		}
		if r.edit != nil || chars <= o.PreviewBytes || !selects(nil, o.Except, r.tool()) {
			continue
		}
		shown := utf8.RuneCountInString(db.Beginning(r.p.Text, o.PreviewBytes))
		edits = append(edits, r.head("offload", shown))
		total -= chars - shown
	}
	return edits
}

// shownLength returns how many characters of its text a result shows.
func shownLength(r result) int {
	switch {
	case r.edit == nil:
		return r.chars()
	case showsText(*r.edit):
		return min(r.chars(), r.edit.Chars)
	}
	return 0
}
