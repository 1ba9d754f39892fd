package compaction

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// userHeading stands before the messages of the user that a summary quotes. They are its last part, and no other part
// takes their room.
const userHeading = "## All user messages, word for word"

// quotesOverhead bounds the tokens of the heading, and of the line about the messages that are left out.
const quotesOverhead = 64

// quotesUser reports whether a summary of the format quotes all messages of the user.
func (f *Format) quotesUser() bool { return f != nil && f.UserMessages }

// leftOutLine matches the line that counts the quotations which had no room, with their range.
var leftOutLine = regexp.MustCompile(`^- \[seq (\d+)–(\d+)\] (\d+) older`)

// quotation is the line that quotes a message of the user, or several that have no room.
type quotation struct {
	from, to int64 // seqs
	count    int
	line     string // empty if it has no room
}

// quotationOf returns the quotation of a message; false if it is none of the user, or says nothing.
func quotationOf(m recall.Message) (q quotation, ok bool) {
	if m.Role != recall.User {
		return q, false
	}
	said := strings.Join(strings.Fields(clean(requestText(m))), " ")
	line := oneLine(said, requestChars)
	if line != said {
		line += fmt.Sprintf(" [%d of %d characters; the rest is at seq %d]", tokens.Chars(line)-1, tokens.Chars(said), m.Seq)
	}
	return quotation{m.Seq, m.Seq, 1, fmt.Sprintf("- [%d] %s", m.Seq, line)}, said != ""
}

// quotationsIn returns the quotations in a summary, and the summary without them.
func quotationsIn(summary string) (all []quotation, without string) {
	i := strings.LastIndex("\n"+summary, "\n"+userHeading+"\n")
	if i < 0 {
		return nil, summary
	}
	before, list := strings.TrimSpace(summary[:max(i-1, 0)]), summary[i+len(userHeading)+1:]
	rest := list
	for whole := range strings.Lines(list) {
		line := strings.TrimSpace(whole)
		if found := leftOutLine.FindStringSubmatch(line); found != nil {
			from, _ := strconv.ParseInt(found[1], 10, 64)
			to, _ := strconv.ParseInt(found[2], 10, 64)
			count, _ := strconv.Atoi(found[3])
			all = append(all, quotation{from, to, count, ""})
			rest = rest[len(whole):]
			continue
		}
		number, _, ok := strings.Cut(strings.TrimPrefix(line, "- ["), "] ")
		seq, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil {
			break
		}
		all = append(all, quotation{seq, seq, 1, line})
		rest = rest[len(whole):]
	}
	return all, strings.TrimSpace(before + "\n\n" + strings.TrimSpace(rest))
}

// quotationTokens returns the tokens of the quotations that end a summary.
func quotationTokens(summary string) (n int) {
	all, _ := quotationsIn(summary)
	for _, q := range all {
		n = add(n, tokens.Estimate(q.line+"\n"))
	}
	return n
}

// quote lets the summary of the plan have a format.
func (p *planner) quote(f *Format) {
	if p.format = f; !f.quotesUser() {
		return
	}
	each := make([]int, len(p.v.Messages))
	for i, m := range p.v.Messages {
		if q, ok := quotationOf(m); ok {
			each[i] = tokens.Estimate(q.line + "\n")
		}
	}
	p.said = sums(each)
	if p.v.Summary != nil {
		p.carried = quotationTokens(p.v.Summary.Text)
	}
}

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
