package summary

import (
	"fmt"
	"strings"

	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/tokenmath"
	"github.com/loci-memory/loci/recall/tokens"
)

// quotations returns the quotations of the user's messages and those in the previous summary, the oldest first, without
// secrets.
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

// reserve takes the room for quotations out of the text's budget: as much as they need, at most the plan's number, or
// half of the budget (a quarter of a small one) if the plan has none. It takes at most half of the characters that the
// settings allow.
func (w *writer) reserve() {
	w.quoted = w.quotations()
	need, chars := 0, tokens.Chars(prose.UserHeading)
	for _, q := range w.quoted {
		need = tokenmath.Add(need, tokens.Estimate(q.Line+"\n"))
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
		if w.e.Budget <= smallBudget {
			most /= 2
		}
	}
	w.reserved = min(need+prose.QuotesOverhead, most)
}

// withQuotations appends quotations to a text. It takes the newest ones that fit the rest of the budget and of the
// characters that the settings allow.
func (w *writer) withQuotations(text string) string {
	if len(w.quoted) == 0 {
		return text
	}
	room := max(w.e.Budget, plan.MinBudget, w.budget+w.reserved) - tokens.Estimate(text)
	chars := 1 << 40
	if w.s.ClipChars != nil {
		chars = *w.s.ClipChars + w.quotedChars - tokens.Chars(text)
	}
	blockOf := func(from int) string { // the block of quotations from an index on
		omitted := prose.Quotation{}
		for _, q := range w.quoted[:from] {
			if omitted.Count == 0 {
				omitted.From = q.From
			}
			omitted.To, omitted.Count = max(omitted.To, q.To), omitted.Count+q.Count
		}
		var b strings.Builder
		b.WriteString("\n\n" + prose.UserHeading)
		if omitted.Count > 0 {
			fmt.Fprintf(&b, "\n- [seq %d–%d] %d older, for which there is no room here: read them by this range.", omitted.From,
				omitted.To, omitted.Count)
		}
		for _, q := range w.quoted[from:] {
			b.WriteString("\n" + q.Line)
		}
		return b.String()
	}
	first, last := 0, len(w.quoted) // skip quotations that had no room in an earlier summary
	for first < last && w.quoted[first].Line == "" {
		first++
	}
	for first < last { // search the fewest that must be left out
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
