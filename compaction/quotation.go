package compaction

import (
	"cmp"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// requestChars bounds the quotation of a request. A longer one is cut at the end of a sentence.
const requestChars = 1_500

// quoted returns a request on one line: whole, or its first sentences.
func quoted(text string) string {
	one := strings.Join(strings.Fields(text), " ")
	one = tokens.PrefixChars(one, requestChars+1) // of more, no other sentence fits
	return cmp.Or(wholeSentences(one, func(s string) bool { return len(s) <= requestChars }), oneLine(one, requestChars))
}

// quotesOverhead bounds the tokens of the heading, and of the line about the messages that are left out.
const quotesOverhead = 64

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
