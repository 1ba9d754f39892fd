package tool

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool/jq"
	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/chunker/pattern"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Bounds on the results of a query.
const (
	usualQueryResults = 50
	maxQueryResults   = 500
	maxQueryBytes     = MaxChars - 6_000 // of all results together, so that they and the text around them fit
	maxPatternBytes   = 1_000
	maxQueryOffset    = 1_000_000
	maxGroupChars     = 200 // of each group of a match
)

type queryArgs struct {
	ID      text    `json:"id"`
	JQ      text    `json:"jq"`
	Pattern text    `json:"pattern"`
	Offset  *number `json:"offset"`
	Limit   *number `json:"limit"`
}

// queryResult runs a jq expression or a regular expression over a whole text.
func (m Memories) queryResult(ctx context.Context, c Caller, a queryArgs) (Result, error) {
	id := strings.TrimSpace(string(a.ID))
	offset := int(deref(a.Offset, 0))
	switch {
	case id == "":
		return Result{}, db.Invalid("No id given. Give the id of a long text, such as clip-…, or of a message.")
	case strings.TrimSpace(string(a.JQ)) == "" && a.Pattern == "":
		return Result{}, db.Invalid("Neither jq nor pattern is given. Give jq, such as '.[0]', for JSON, or pattern, a " +
			"regular expression, for any text.")
	case strings.TrimSpace(string(a.JQ)) != "" && a.Pattern != "":
		return Result{}, db.Invalid("Give either jq or pattern, not both.")
	case offset < 0 || offset > maxQueryOffset:
		return Result{}, db.Invalid("offset must be between 0 and %d, got %d", maxQueryOffset, offset)
	}
	limit, err := limited(a.Limit, usualQueryResults, maxQueryResults)
	if err != nil {
		return Result{}, err
	}
	q := query{id: id, jq: string(a.JQ), pattern: string(a.Pattern), offset: offset, limit: limit}
	var answer Result
	err = m.Recall.Whole(ctx, c.Org, c.Agent.ID, recall.ExpandQuery{ID: id, Reach: c.reach()},
		func(whole string) (err error) {
			answer, err = m.run(ctx, c, q, whole)
			return err
		})
	return answer, whereTexts(err)
}

// run answers a query about a text.
func (m Memories) run(ctx context.Context, c Caller, q query, whole string) (Result, error) {
	if q.pattern != "" {
		return q.matches(whole, c.maxChars())
	}
	if m.JQ == nil {
		return Result{}, db.Invalid("This server runs no jq expressions. Use pattern, or read the text with expand.")
	}
	found, err := m.JQ.Run(ctx, c.Org, jq.Query{Expression: q.jq, Text: whole, Skip: q.offset, MaxResults: q.limit,
		MaxBytes: min(maxQueryBytes, c.maxChars())})
	if err != nil {
		return Result{}, err
	}
	return Result{Text: q.resultsText(found)}, nil
}

// query is a model's question about a text.
type query struct {
	id, jq, pattern string
	offset, limit   int

	again func(offset int) string // returns the call that continues at an offset; nil: a call of query_result
}

// next returns the call that shows the results after the first n.
func (q query) next(n int) string {
	if q.again != nil {
		return q.again(q.offset + n)
	}
	return invocation(agent.QueryResult, argument{"id", q.id, nil}, argument{"jq", q.jq, ""},
		argument{"pattern", q.pattern, ""}, argument{"offset", q.offset + n, 0},
		argument{"limit", q.limit, usualQueryResults})
}

// resultsText shows the results of a jq expression, each as JSON on its own line.
func (q query) resultsText(a jq.Answer) string {
	n := len(a.Results)
	if n == 0 {
		if q.offset > 0 {
			return fmt.Sprintf("jq '%s' over %s has no results from offset %d on.", echo(q.jq), q.id, q.offset)
		}
		return fmt.Sprintf("jq '%s' over %s has no results. To see what the text has, ask for keys, type, or .[0].",
			echo(q.jq), q.id)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Results of jq '%s' over %s (showing %d-%d)", echo(q.jq), q.id, q.offset+1, q.offset+n)
	if a.Values > 1 {
		fmt.Fprintf(&b, "\nNote: The text has %d JSON values; the expression reads them as one list.", a.Values)
	}
	b.WriteString("\n" + rule + "\n")
	for _, r := range a.Results {
		b.WriteString(line(r) + "\n")
	}
	if a.CutFrom > 0 {
		fmt.Fprintf(&b, frame.ResultCut+"\n", a.CutFrom)
	}
	if a.More {
		return b.String() + "\nTo see more results, call: " + q.next(n)
	}
	return b.String() + "\nNo more results to show."
}

// match is one match of a pattern in a text.
type match struct {
	line, offset int // the line counts from 1, the offset in bytes
	text         string
	groups       []string
}

// matches shows the matches of a pattern.
func (q query) matches(whole string, chars int) (Result, error) {
	if len(q.pattern) > maxPatternBytes {
		return Result{}, db.Invalid("The pattern has %d bytes; it may have at most %d.", len(q.pattern), maxPatternBytes)
	}
	regex, err := pattern.Compile(q.pattern)
	if err != nil {
		return Result{}, db.Invalid("The pattern is not a regular expression that RE2 knows: %v", err)
	}
	places := regex.FindAllStringSubmatchIndex(whole, q.offset+q.limit+1)
	more := len(places) > q.offset+q.limit
	if len(places) <= q.offset {
		return Result{Text: fmt.Sprintf("No match of '%s' in %s from offset %d on; %d of them in %d bytes. Patterns are "+
			"RE2 expressions; (?i) at the beginning ignores case, and (?s) lets . match line ends.", echo(q.pattern), q.id,
			q.offset, len(places), len(whole))}, nil
	}
	found := matchesAt(whole, places[q.offset:min(len(places), q.offset+q.limit)])
	return Result{Text: most(chars, len(found), func(n int) string {
		return q.matchesPage(found[:n], more || n < len(found))
	})}, nil
}

// matchesAt reads the matches at the given places, which must be in order.
func matchesAt(whole string, places [][]int) (found []match) {
	number, counted := 1, 0
	for _, place := range places {
		number += strings.Count(whole[counted:place[0]], "\n")
		counted = place[0]
		m := match{line: number, offset: place[0], text: whole[place[0]:place[1]]}
		for i := 2; i+1 < len(place); i += 2 {
			group := ""
			if place[i] >= 0 {
				group = whole[place[i]:place[i+1]]
			}
			m.groups = append(m.groups, group)
		}
		found = append(found, m)
	}
	return found
}

func (q query) matchesPage(found []match, more bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Matches of '%s' in %s (showing %d-%d)\n%s\n", echo(q.pattern), q.id, q.offset+1, q.offset+len(found),
		rule)
	for _, m := range found {
		fmt.Fprintf(&b, "line %d (offset %d): %s\n", m.line, m.offset, cmp.Or(shortLine(m.text), "(empty)"))
		for i, group := range m.groups {
			fmt.Fprintf(&b, "  group %d: %s\n", i+1, line(clip(group, maxGroupChars)))
		}
	}
	b.WriteString("\nTo read from a match on, call: " + expandCall(q.id, found[0].offset, recall.ExpandBytes, "") + "\n")
	if more {
		return b.String() + "To see more matches, call: " + q.next(len(found))
	}
	return b.String() + "No more matches to show."
}
