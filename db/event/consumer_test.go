package event_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/event"
)

func TestConsumersKeepTheirPlace(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	agent, other := newHistory(t, pool, 10), newHistory(t, pool, 5)
	const readOn = "; read on from there, or commit without expected_seq"
	seq := func(n int64) *int64 { return &n }
	for _, step := range []struct {
		name     string
		consumer string
		seq      int64
		expected *int64
		want     int64
		problem  string
	}{
		{"the first commit makes it", "a", 4, nil, 4, ""},
		{"where it is expected, it goes on", "a", 6, seq(4), 6, ""},
		{"elsewhere, it stays", "a", 8, seq(4), 6, "expected_seq is 4, but consumer 'a' stands at 6" + readOn},
		{"it is there already", "a", 8, seq(0), 6, "expected_seq is 0, but consumer 'a' stands at 6" + readOn},
		{"it may go back", "a", 2, nil, 2, ""},
		{"to the very beginning", "a", 0, seq(2), 0, ""},
		{"where it stands as one that is not there", "a", 3, seq(0), 3, ""},
		{"to the newest event", "a", 10, nil, 10, ""},
		{"not beyond it", "a", 11, nil, 10, "seq is 11; it must be from 0 to 10, the agent's newest event"},
		{"not below the first", "a", -1, nil, 10, "seq is -1; it must be from 0 to 10, the agent's newest event"},
		{"another is independent", "b/ü", 1, seq(0), 1, ""},
		{"one that is not there stands at 0", "c", 1, seq(7), 0, "expected_seq is 7, but consumer 'c' stands at 0" + readOn},
	} {
		c, err := event.CommitCursor(t.Context(), pool, pool.org,
			event.Commit{AgentID: agent, Name: step.consumer, Seq: step.seq, Expected: step.expected})
		switch {
		case step.problem == "" && (err != nil || c.Seq != step.want || c.Name != step.consumer ||
			c.UpdatedAt.Before(c.CreatedAt)):
			t.Errorf("%s: got %+v, %v", step.name, c, err)
		case step.problem != "" && (err == nil || err.Error() != step.problem ||
			!errors.Is(err, db.ErrConflict) && !errors.Is(err, db.ErrInvalid)):
			t.Errorf("%s: got %v, want %s", step.name, err, step.problem)
		}
		position, err := event.Cursor(t.Context(), pool, pool.org, agent, step.consumer)
		if err != nil || position != step.want {
			t.Errorf("%s: it stands at %d, %v, want %d", step.name, position, err, step.want)
		}
	}
	commit := event.Commit{AgentID: other, Name: "a", Seq: 5}
	if _, err := event.CommitCursor(t.Context(), pool, pool.org, commit); err != nil {
		t.Errorf("another agent's of the same name: %v", err)
	}
	names := func(p db.Page) (names []string) {
		t.Helper()
		list, err := event.Consumers(t.Context(), pool, pool.org, agent, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			names = append(names, c.Name)
		}
		return names
	}
	if diff := cmp.Diff([]string{"a", "b/ü"}, names(db.Page{Ascending: true})); diff != "" {
		t.Errorf("the list (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b/ü"}, names(db.Page{Ascending: true, After: "a", Limit: 1})); diff != "" {
		t.Errorf("the list after a (-want +got):\n%s", diff)
	}
	if err := event.DeleteConsumer(t.Context(), pool, pool.org, agent, "a"); err != nil {
		t.Error(err)
	}
	others := dbtest.NewOrg(t, pool)
	for what, err := range map[string]error{
		"one that was deleted":  second(event.ConsumerNamed(t.Context(), pool, pool.org, agent, "a")),
		"deleting it again":     event.DeleteConsumer(t.Context(), pool, pool.org, agent, "a"),
		"of no agent":           second(event.ConsumerNamed(t.Context(), pool, pool.org, "agent-none", "a")),
		"a list of no agent":    second(event.Consumers(t.Context(), pool, pool.org, "agent-none", db.Page{})),
		"of an agent of others": second(event.ConsumerNamed(t.Context(), pool, others, other, "a")),
		"a commit to others": second(event.CommitCursor(t.Context(), pool, others, event.Commit{
			AgentID: other, Name: "a"})),
		"deleting one of others":      event.DeleteConsumer(t.Context(), pool, others, other, "a"),
		"the cursor of one of others": second(event.Cursor(t.Context(), pool, others, other, "a")),
	} {
		if !errors.Is(err, db.ErrNotFound) {
			t.Errorf("%s: got %v, want ErrNotFound", what, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestNamesOfConsumersAreChecked(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t)
	agent := newHistory(t, pool, 1)
	for name, want := range map[string]string{
		"":                       "the consumer's name has 0 characters; it must have from 1 to 200",
		strings.Repeat("ü", 201): "the consumer's name has 201 characters; it must have from 1 to 200",
		"a\nb":                   `the consumer's name "a\nb" has control characters, or is not UTF-8`,
		"a\u0085":                `the consumer's name "a\u0085" has control characters, or is not UTF-8`,
		"a\xff":                  `the consumer's name "a\xff" has control characters, or is not UTF-8`,
	} {
		for what, err := range map[string]error{
			"commit": second(event.CommitCursor(t.Context(), pool, pool.org, event.Commit{AgentID: agent, Name: name, Seq: 1})),
			"read":   second(event.ConsumerNamed(t.Context(), pool, pool.org, agent, name)),
			"delete": event.DeleteConsumer(t.Context(), pool, pool.org, agent, name),
		} {
			if !errors.Is(err, db.ErrInvalid) || err.Error() != want {
				t.Errorf("%s %q: got %v, want %s", what, name, err, want)
			}
		}
	}
	longest := event.Commit{AgentID: agent, Name: strings.Repeat("ü", 200), Seq: 1}
	if _, err := event.CommitCursor(t.Context(), pool, pool.org, longest); err != nil {
		t.Errorf("200 characters: %v", err)
	}
}
