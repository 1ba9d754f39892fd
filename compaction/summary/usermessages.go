package summary

import (
	"fmt"
	"strings"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/ratio"
	"github.com/loci-memory/loci/recall/tokens"
)

// quotations returns those of the messages and of the summary before, the oldest first, without secrets.
func (w *writer) quotations() (all []prose.Quotation) {
	if !w.e.Format.QuotesUser() {
		return nil
	}
	all, _ = prose.QuotationsIn(w.previous)
	for _, m := range w.e.Messages {
		if q, ok := prose.QuotationOf(m); ok {
			q.Line = strings.Join(strings.Fields(w.redacted(q.Line)), " ")
			all = append(all, q)
		}
	}
	return all
}

// reserve keeps what quoting the user needs out of the budget of the text: at most what the plan says, or half of the
// budget if it says nothing; and at most half of the characters that the settings allow.
func (w *writer) reserve() {
	w.quoted = w.quotations()
	need, chars := 0, tokens.Chars(prose.UserHeading)
	for _, q := range w.quoted {
		need = ratio.Add(need, tokens.Estimate(q.Line+"\n"))
		chars += tokens.Chars(q.Line) + 1
	}
	if need == 0 {
		return
	}
	if clip := w.s.ClipChars; clip != nil {
		w.s.ClipChars = new(*clip - min(chars, *clip/2))
		w.quotedChars = *clip - *w.s.ClipChars
	}
	most := w.e.Quoted
	if most <= 0 {
		most = max(min(w.e.Budget/2, w.e.Budget-plan.MinBudget), 0)
	}
	w.reserved = min(need+prose.QuotesOverhead, most)
}

// withQuotations returns a text with the quotations behind it, the newest that have room: what the text leaves of the
// budget, and of the characters that the settings allow.
func (w *writer) withQuotations(text string) string {
	if len(w.quoted) == 0 {
		return text
	}
	room := max(w.e.Budget, plan.MinBudget, w.budget+w.reserved) - tokens.Estimate(text)
	chars := 1 << 40
	if w.s.ClipChars != nil {
		chars = *w.s.ClipChars + w.quotedChars - tokens.Chars(text)
	}
	blockOf := func(from int) string { // of the quotations from an index on
		left := prose.Quotation{}
		for _, q := range w.quoted[:from] {
			if left.Count == 0 {
				left.From = q.From
			}
			left.To, left.Count = max(left.To, q.To), left.Count+q.Count
		}
		var b strings.Builder
		b.WriteString("\n\n" + prose.UserHeading)
		if left.Count > 0 {
			fmt.Fprintf(&b, "\n- [seq %d–%d] %d older, for which there is no room here: read them by this range.", left.From,
				left.To, left.Count)
		}
		for _, q := range w.quoted[from:] {
			b.WriteString("\n" + q.Line)
		}
		return b.String()
	}
	first, last := 0, len(w.quoted) // the first that has a line; those before have no room already
	for first < last && w.quoted[first].Line == "" {
		first++
	}
	for first < last { // the fewest that have to be left out
		middle := (first + last) / 2
		if block := blockOf(middle); tokens.Estimate(block) <= room && tokens.Chars(block) <= chars {
			last = middle
		} else {
			first = middle + 1
		}
	}
	if block := blockOf(last); tokens.Estimate(block) <= room && tokens.Chars(block) <= chars {
		return text + block
	}
	return text
}
