package summary

import (
	"fmt"
	"slices"
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
	return prose.OnceEach(all)
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

// withQuotations appends quotations to a text, within the rest of the budget and of the characters that the settings
// allow: the newest ones; if there is not room for all, in half of the room those of rules and corrections before other
// old ones.
func (w *writer) withQuotations(text string) string {
	if len(w.quoted) == 0 {
		return text
	}
	most := max(w.e.Budget, plan.MinBudget, w.budget+w.reserved)
	room := quotationRoom{tokens: most - tokens.Estimate(text), chars: 1 << 40}
	if w.s.ClipChars != nil {
		room.chars = *w.s.ClipChars + w.quotedChars - tokens.Chars(text)
	}
	if block := quotationBlock(w.quoted, func(int) bool { return true }); room.has(block) {
		return text + block
	}
	for share := 1.0; share > 0.5; share -= 0.05 { // the heading and the line about others take some
		chosen := room.choose(w.quoted, share)
		if block := quotationBlock(w.quoted, func(i int) bool { return chosen[i] }); room.has(block) {
			return text + block
		}
	}
	if block := quotationBlock(w.quoted, func(int) bool { return false }); room.has(block) {
		return text + block
	}
	return text
}

// quotationRoom is what quotations may take.
type quotationRoom struct{ tokens, chars int }

func (r quotationRoom) has(block string) bool {
	return tokens.Estimate(block) <= r.tokens && tokens.Chars(block) <= r.chars
}

// choose returns the indexes of the quotations that are shown in a share of the room.
func (r quotationRoom) choose(all []prose.Quotation, share float64) map[int]bool {
	chosen := map[int]bool{}
	left := quotationRoom{int(share * float64(r.tokens)), int(share * float64(r.chars))}
	take := func(least quotationRoom, fits func(prose.Quotation) bool) {
		for i, q := range slices.Backward(all) {
			n, chars := tokens.Estimate(q.Line+"\n"), tokens.Chars(q.Line)+1
			if chosen[i] || q.Line == "" || !fits(q) {
				continue
			}
			if n > left.tokens-least.tokens || chars > left.chars-least.chars {
				return
			}
			left.tokens, left.chars, chosen[i] = left.tokens-n, left.chars-chars, true
		}
	}
	anyOne := func(prose.Quotation) bool { return true }
	take(quotationRoom{left.tokens / 2, left.chars / 2}, anyOne)
	take(quotationRoom{}, prose.Quotation.Lasts)
	take(quotationRoom{}, anyOne)
	return chosen
}

// quotationBlock returns the last part of a summary: the quotations that are shown, and a line about the others.
func quotationBlock(all []prose.Quotation, shown func(i int) bool) string {
	omitted := prose.Quotation{}
	var lines strings.Builder
	for i, q := range all {
		if q.Line != "" && shown(i) {
			lines.WriteString("\n" + q.Line)
			continue
		}
		if omitted.Count == 0 {
			omitted.From = q.From
		}
		omitted.From, omitted.To = min(omitted.From, q.From), max(omitted.To, q.To)
		omitted.Count += q.Count
	}
	block := "\n\n" + prose.UserHeading
	if omitted.Count > 0 {
		block += fmt.Sprintf("\n- [seq %d–%d] %d older, for which there is no room here: read them by this range.",
			omitted.From, omitted.To, omitted.Count)
	}
	return block + lines.String()
}
