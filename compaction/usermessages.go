package compaction

import (
	"fmt"
	"strings"

	"github.com/loci-memory/loci/recall/tokens"
)

// quotations returns those of the messages and of the summary before, the oldest first, without secrets.
func (w *writer) quotations() (all []quotation) {
	if !w.e.Format.quotesUser() {
		return nil
	}
	all, _ = quotationsIn(w.previous)
	for _, m := range w.e.Messages {
		if q, ok := quotationOf(m); ok {
			q.line = strings.Join(strings.Fields(w.redacted(q.line)), " ")
			all = append(all, q)
		}
	}
	return all
}

// reserve keeps what quoting the user needs out of the budget of the text: at most what the plan says, or half of the
// budget if it says nothing; and at most half of the characters that the settings allow.
func (w *writer) reserve() {
	w.quoted = w.quotations()
	need, chars := 0, tokens.Chars(userHeading)
	for _, q := range w.quoted {
		need = add(need, tokens.Estimate(q.line+"\n"))
		chars += tokens.Chars(q.line) + 1
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
		most = max(min(w.e.Budget/2, w.e.Budget-MinBudget), 0)
	}
	w.reserved = min(need+quotesOverhead, most)
}

// withQuotations returns a text with the quotations behind it, the newest that have room: what the text leaves of the
// budget, and of the characters that the settings allow.
func (w *writer) withQuotations(text string) string {
	if len(w.quoted) == 0 {
		return text
	}
	room := max(w.e.Budget, MinBudget, w.budget+w.reserved) - tokens.Estimate(text)
	chars := 1 << 40
	if w.s.ClipChars != nil {
		chars = *w.s.ClipChars + w.quotedChars - tokens.Chars(text)
	}
	blockOf := func(from int) string { // of the quotations from an index on
		left := quotation{}
		for _, q := range w.quoted[:from] {
			if left.count == 0 {
				left.from = q.from
			}
			left.to, left.count = max(left.to, q.to), left.count+q.count
		}
		var b strings.Builder
		b.WriteString("\n\n" + userHeading)
		if left.count > 0 {
			fmt.Fprintf(&b, "\n- [seq %d–%d] %d older, for which there is no room here: read them by this range.", left.from,
				left.to, left.count)
		}
		for _, q := range w.quoted[from:] {
			b.WriteString("\n" + q.line)
		}
		return b.String()
	}
	first, last := 0, len(w.quoted) // the first that has a line; those before have no room already
	for first < last && w.quoted[first].line == "" {
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
