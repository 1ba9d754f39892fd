package event_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/event"
)

// newHistory creates an agent with n events. Every tenth is a message, the others are openings of files.
func newHistory(t *testing.T, pool database, n int) string {
	t.Helper()
	agent := newAgent(t, pool)
	events := make([]event.Event, n)
	for i := range events {
		events[i] = event.Event{AgentID: agent, Type: event.FileOpened, RefID: strconv.Itoa(i + 1)}
		if (i+1)%10 == 0 {
			events[i].Type = event.MessageAppended
		}
	}
	write(t, pool, events...)
	return agent
}

// write appends events in one transaction.
func write(t *testing.T, pool database, events ...event.Event) {
	t.Helper()
	err := db.Tx(t.Context(), pool, func(tx pgx.Tx) error {
		_, err := event.Append(t.Context(), tx, pool.org, events...)
		return err
	})
	if err != nil {
		t.Fatalf("append: %v", err)
	}
}

func seqs(events []event.Event) []int64 {
	all := make([]int64, len(events))
	for i, e := range events {
		all[i] = e.Seq
	}
	return all
}

// to returns the positions from first to last, downwards if last is lower.
func to(first, last int64) []int64 {
	all := []int64{}
	step := int64(1)
	if last < first {
		step = -1
	}
	for seq := first; ; seq += step {
		all = append(all, seq)
		if seq == last {
			return all
		}
	}
}

func TestSlicesOfEventsAreExact(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	agent := newHistory(t, pool, 10_000)
	messages := []event.Type{event.MessageAppended}
	none := []int64{}
	for name, c := range map[string]struct {
		query event.Query
		want  []int64
	}{
		"ten in the middle":                      {event.Query{From: 4000, To: 4009}, to(4000, 4009)},
		"ten in the middle, downwards":           {event.Query{From: 4000, To: 4009, Descending: true}, to(4009, 4000)},
		"one":                                    {event.Query{From: 7, To: 7}, to(7, 7)},
		"three before one":                       {event.Query{Before: 5000, Limit: 3}, to(4997, 4999)},
		"three before one, downwards":            {event.Query{Before: 5000, Limit: 3, Descending: true}, to(4999, 4997)},
		"before one, as many as without a limit": {event.Query{Before: 5000}, to(4900, 4999)},
		"before one that is not there yet":       {event.Query{Before: 20_000, Limit: 2}, to(9999, 10_000)},
		"before the first":                       {event.Query{Before: 1}, none},
		"three after one":                        {event.Query{After: 5000, Limit: 3}, to(5001, 5003)},
		"after the last":                         {event.Query{After: 10_000}, none},
		"after every position":                   {event.Query{After: math.MaxInt64}, none},
		"after one, downwards":                   {event.Query{After: 5000, Limit: 3, Descending: true}, to(10_000, 9998)},
		"between two":                            {event.Query{After: 10, Before: 14}, to(11, 13)},
		"between two, the first of them":         {event.Query{After: 10, Before: 100, Limit: 2}, to(11, 12)},
		"between neighbours":                     {event.Query{After: 10, Before: 11}, none},
		"after one, to the same":                 {event.Query{After: 10, To: 10}, none},
		"from one, before another":               {event.Query{From: 10, Before: 12}, to(10, 11)},
		"from one, before itself":                {event.Query{From: 10, Before: 10}, none},
		"to one":                                 {event.Query{To: 3}, to(1, 3)},
		"to one, and before a lower one":         {event.Query{To: 30, Before: 4, Limit: 2}, to(2, 3)},
		"beyond the end":                         {event.Query{From: 9999, To: 20_000}, to(9999, 10_000)},
		"nothing asked for":                      {event.Query{}, to(1, 100)},
		"the newest":                             {event.Query{Descending: true, Limit: 1}, to(10_000, 10_000)},
		"the most":                               {event.Query{Limit: 1000}, to(1, 1000)},
		"of a type":                              {event.Query{From: 95, Limit: 2, Types: messages}, []int64{100, 110}},
		"of a type before one":                   {event.Query{Before: 100, Limit: 2, Types: messages}, []int64{80, 90}},
		"of several types": {event.Query{From: 99, To: 101,
			Types: []event.Type{event.MessageAppended, event.FileOpened}}, to(99, 101)},
		"of a type that did not happen to an agent": {event.Query{Types: []event.Type{event.FileClosed}}, none},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := event.List(t.Context(), pool, pool.org, agent, c.query)
			if err != nil {
				t.Fatalf("%+v: %v", c.query, err)
			}
			if diff := cmp.Diff(c.want, seqs(got)); diff != "" {
				t.Errorf("%+v (-want +got):\n%s", c.query, diff)
			}
			for _, e := range got {
				if e.AgentID != agent || e.RefID != strconv.FormatInt(e.Seq, 10) || e.At.IsZero() {
					t.Errorf("%+v: got %+v", c.query, e)
				}
			}
		})
	}
}

func TestEventsRefuseWhatContradictsItself(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	agent := newHistory(t, pool, 3)
	for name, c := range map[string]struct {
		query event.Query
		want  string
	}{
		"a negative from":   {event.Query{From: -1}, "from is -1; positions of events begin at 1"},
		"a negative to":     {event.Query{To: -2}, "to is -2; positions of events begin at 1"},
		"a negative before": {event.Query{Before: -3}, "before is -3; positions of events begin at 1"},
		"a negative after": {event.Query{After: math.MinInt64},
			"after is -9223372036854775808; positions of events begin at 1"},
		"from beyond to":      {event.Query{From: 3, To: 2}, "from is 3, which is beyond to, which is 2"},
		"from beyond before":  {event.Query{From: 3, Before: 2}, "from is 3, which is beyond before, which is 2"},
		"after beyond to":     {event.Query{After: 3, To: 2}, "after is 3, which is beyond to, which is 2"},
		"after beyond before": {event.Query{After: 3, Before: 2}, "after is 3, which is beyond before, which is 2"},
		"a limit of too many": {event.Query{Limit: 1001}, "limit is 1001; it must be from 1 to 1000"},
		"a negative limit":    {event.Query{Limit: -1}, "limit is -1; it must be from 1 to 1000"},
		"no type": {event.Query{Types: []event.Type{event.FileOpened, "opened"}},
			"types: there is no type 'opened'; the types are agent_created, agent_updated, folder_attached, " +
				"folder_detached, file_opened, file_used, file_closed, message, " +
				"archive_attached, archive_detached, passage_inserted, passages_inserted, passage_updated, " +
				"passage_deleted, block_attached, block_detached, block_changed, memory_tree_attached, " +
				"memory_tree_detached, memory_file_changed, compaction, compaction_reverted, window_warning, " +
				"prompt_refused, refusal_undone, prompts_growing, working_memory_changed, policy_changed"},
	} {
		if got, err := event.List(t.Context(), pool, pool.org, agent, c.query); !errors.Is(err, db.ErrInvalid) ||
			err.Error() != c.want {
			t.Errorf("%s: got %v, %v, want %s", name, got, err, c.want)
		}
	}
	for name, c := range map[string]struct {
		org   db.Org
		agent string
	}{"no agent": {pool.org, "agent-none"}, "an agent of others": {dbtest.NewOrg(t, pool), agent}} {
		if got, err := event.List(t.Context(), pool, c.org, c.agent, event.Query{}); !errors.Is(err, db.ErrNotFound) {
			t.Errorf("%s: got %v, %v, want ErrNotFound", name, got, err)
		}
	}
	if got, err := event.List(t.Context(), pool, pool.org, newAgent(t, pool), event.Query{}); err != nil || got == nil ||
		len(got) != 0 {
		t.Errorf("an agent without events: got %v, %v, want an empty list", got, err)
	}
}

// Types lists every declared type, so that callers see all types and may ask for each.
func TestAllTypesOfEventsAreListed(t *testing.T) {
	t.Parallel()
	source, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var declared []event.Type
	ast.Inspect(source, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if typeName, ok := spec.Type.(*ast.Ident); ok && typeName.Name == "Type" {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			declared = append(declared, event.Type(value))
		}
		return true
	})
	if !slices.Equal(declared, event.Types) || len(declared) == 0 {
		t.Errorf("EventTypes are %q, declared are %q", event.Types, declared)
	}
}
