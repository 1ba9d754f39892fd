package tool

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// queryLogTool is the name of the tool that computes on a range of the log.
const queryLogTool = "query_log"

// maxEntryChars bounds the text of an entry that a slice shows; jq sees the whole.
const maxEntryChars = 300

// maxToolsNamed bounds the tools that a result names in place of one that is not called.
const maxToolsNamed = 30

type logArgs struct {
	Seq    text       `json:"seq"`
	Type   list[text] `json:"type"`
	Tool   text       `json:"tool"`
	JQ     text       `json:"jq"`
	Offset *number    `json:"offset"`
	Limit  *number    `json:"limit"`
}

// queryLog shows a slice of the log, or runs a jq expression over the list of its entries.
func (m Memories) queryLog(ctx context.Context, c Caller, a logArgs) (Result, error) {
	offset := int(deref(a.Offset, 0))
	if offset < 0 || offset > maxQueryOffset {
		return Result{}, db.Invalid("offset must be between 0 and %d, got %d", maxQueryOffset, offset)
	}
	limit, err := limited(a.Limit, usualQueryResults, maxQueryResults)
	if err != nil {
		return Result{}, err
	}
	q := recall.LogQuery{Range: string(a.Seq), Reach: c.reach(), Types: plain(a.Type), Tool: string(a.Tool)}
	if q.Range == "" {
		q.Conversation = cmp.Or(c.Conversation, recall.DefaultConversation)
	}
	var answer Result
	err = m.Recall.LogSlice(ctx, c.Org, c.Agent.ID, q, func(entries []recall.LogEntry, called map[string]int) (err error) {
		if why := a.noSuchTool(called); why != "" {
			answer = Result{Text: why}
			return nil
		}
		if strings.TrimSpace(string(a.JQ)) == "" {
			answer = Result{Text: a.slice(entries, offset, limit, c.maxChars())}
			return nil
		}
		whole, err := json.Marshal(append([]recall.LogEntry{}, entries...))
		if err == nil {
			answer, err = m.run(ctx, c, query{id: a.place(), jq: string(a.JQ), offset: offset, limit: limit, again: a.from},
				string(whole))
		}
		return err
	})
	if errors.Is(err, db.ErrNotFound) {
		return Result{Text: "The log has nothing there: " + a.place() + "."}, nil
	}
	return answer, err
}

// noSuchTool says that the tool of a call is not called in its range, and which are; empty if it is, or if the call
// names none. called maps the tools there → the number of calls.
func (a logArgs) noSuchTool(called map[string]int) string {
	if a.Tool == "" {
		return ""
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(called)) {
		if strings.EqualFold(name, string(a.Tool)) {
			return ""
		}
		names = append(names, fmt.Sprintf("%s (%s)", echo(name), count(called[name], "call")))
	}
	here := logArgs{Seq: a.Seq}
	if len(names) == 0 {
		return fmt.Sprintf("No tool is called in %s, and so not %s. Leave tool out.", here.place(), echo(string(a.Tool)))
	}
	shown := joined(names[:min(len(names), maxToolsNamed)])
	if more := len(names) - maxToolsNamed; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("No tool %s is called in %s. The tools called there are %s.", echo(string(a.Tool)), here.place(),
		shown)
}

// place says in words which entries a call selects.
func (a logArgs) place() string {
	text := "the log"
	if a.Seq != "" {
		text += " at seq " + echo(strings.TrimPrefix(string(a.Seq), "seq "))
	}
	if len(a.Type) > 0 {
		text += ", type " + echo(strings.Join(plain(a.Type), " or "))
	}
	if a.Tool != "" {
		text += ", tool " + echo(string(a.Tool))
	}
	return text
}

// from returns the call that continues at an offset.
func (a logArgs) from(offset int) string {
	shown := []argument{{"seq", string(a.Seq), ""}}
	if len(a.Type) > 0 {
		shown = append(shown, argument{"type", json.RawMessage(literal(plain(a.Type))), nil})
	}
	return invocation(queryLogTool, append(shown, argument{"tool", string(a.Tool), ""}, argument{"jq", string(a.JQ), ""},
		argument{"offset", offset, 0}, argument{"limit", int(deref(a.Limit, usualQueryResults)), usualQueryResults})...)
}

// slice shows entries, each as JSON on its own line.
func (a logArgs) slice(entries []recall.LogEntry, offset, limit, chars int) string {
	shown := entries[min(offset, len(entries)):min(offset+limit, len(entries))]
	if len(shown) == 0 {
		return fmt.Sprintf("No entries of %s from offset %d on: there are %d.", a.place(), offset, len(entries))
	}
	return most(chars, len(shown), func(n int) string {
		var b strings.Builder
		fmt.Fprintf(&b, "Entries of %s (showing %d-%d of %d)\n%s\n", a.place(), offset+1, offset+n, len(entries), rule)
		for _, e := range shown[:n] {
			if short := clip(e.Text, maxEntryChars); short != e.Text {
				e.Text = short + "…"
			}
			if len(e.Arguments) > maxEntryChars {
				e.Arguments = json.RawMessage(literal(clip(string(e.Arguments), maxEntryChars) + "…"))
			}
			b.WriteString(line(literal(e)) + "\n")
		}
		if offset+n < len(entries) {
			return b.String() + "\nTo see more entries, call: " + a.from(offset+n)
		}
		return b.String() + "\nNo more entries to show."
	})
}
