package prose

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/compaction/tokenmath"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// RequestChars bounds the quotation of a request. A longer request is cut at the end of a sentence.
const RequestChars = 1_500

// Quoted returns a request on one line, whole or only its first sentences.
func Quoted(text string) string {
	one := strings.Join(strings.Fields(text), " ")
	one = tokens.PrefixChars(one, RequestChars+1) // no sentence beyond this fits
	return cmp.Or(WholeSentences(one, func(s string) bool { return len(s) <= RequestChars }), OneLine(one, RequestChars))
}

// QuotesOverhead bounds the tokens of the heading and of the line about messages without room.
const QuotesOverhead = 64

// leftOutLine matches the line that counts messages without room, and names their range.
var leftOutLine = regexp.MustCompile(`^- \[seq (\d+)–(\d+)\] (\d+) older`)

// Quotation is a line that quotes a message of the user, or stands for several messages that have no room.
type Quotation struct {
	From, To int64 // seqs
	Count    int
	Line     string // empty for messages without room
}

// QuotationOf returns the quotation of a message. ok is false if the message is not the user's, or says nothing.
func QuotationOf(m recall.Message) (q Quotation, ok bool) {
	if m.Role != recall.User {
		return q, false
	}
	text := strings.Join(strings.Fields(Clean(RequestText(m))), " ")
	line := OneLine(text, RequestChars)
	if line != text {
		line += fmt.Sprintf(" [%d of %d characters; the rest is at seq %d]", tokens.Chars(line)-1, tokens.Chars(text), m.Seq)
	}
	return Quotation{m.Seq, m.Seq, 1, fmt.Sprintf("- [%d] %s", m.Seq, line)}, text != ""
}

// QuotationsIn returns the quotations in a summary, and the summary without them.
func QuotationsIn(summary string) (all []Quotation, without string) {
	i := strings.LastIndex("\n"+summary, "\n"+UserHeading+"\n")
	if i < 0 {
		return nil, summary
	}
	before, list := strings.TrimSpace(summary[:max(i-1, 0)]), summary[i+len(UserHeading)+1:]
	rest := list
	for whole := range strings.Lines(list) {
		line := strings.TrimSpace(whole)
		if found := leftOutLine.FindStringSubmatch(line); found != nil {
			from, _ := strconv.ParseInt(found[1], 10, 64)
			to, _ := strconv.ParseInt(found[2], 10, 64)
			count, _ := strconv.Atoi(found[3])
			all = append(all, Quotation{from, to, count, ""})
			rest = rest[len(whole):]
			continue
		}
		number, _, ok := strings.Cut(strings.TrimPrefix(line, "- ["), "] ")
		seq, err := strconv.ParseInt(number, 10, 64)
		if !ok || err != nil {
			break
		}
		all = append(all, Quotation{seq, seq, 1, line})
		rest = rest[len(whole):]
	}
	return all, strings.TrimSpace(before + "\n\n" + strings.TrimSpace(rest))
}

// Lasts reports whether a quoted message has a rule or a correction.
func (q Quotation) Lasts() bool {
	_, text, _ := strings.Cut(q.Line, "] ")
	return slices.ContainsFunc(Sentences(text), func(s string) bool {
		return SentenceOf(s).Is(Standing | Correcting | Wishing)
	})
}

// OnceEach returns quotations without those of messages that were said again later.
func OnceEach(all []Quotation) []Quotation {
	last := map[string]int{}
	said := func(q Quotation) string {
		_, text, _ := strings.Cut(q.Line, "] ")
		return text
	}
	for i, q := range all {
		last[said(q)] = i
	}
	kept := []Quotation{}
	for i, q := range all {
		if q.Line == "" || last[said(q)] == i {
			kept = append(kept, q)
		}
	}
	return kept
}

// QuotationTokens returns the tokens of the quotations at the end of a summary.
func QuotationTokens(summary string) (n int) {
	all, _ := QuotationsIn(summary)
	for _, q := range all {
		n = tokenmath.Add(n, tokens.Estimate(q.Line+"\n"))
	}
	return n
}
