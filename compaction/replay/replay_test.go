package replay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/replay"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/queue/queuetest"
	"github.com/loci-memory/loci/recall"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

type fixture struct {
	testing.TB
	pool  *pgxpool.Pool
	org   db.Org
	store *replay.Store
}

// newFixture returns an organization, with a store that nobody works for.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	pool, org := dbtest.Org(t)
	return &fixture{TB: t, pool: pool, org: org, store: &replay.Store{DB: pool, Recall: recall.New(pool, recall.Options{}),
		Slice: time.Nanosecond}}
}

// session returns a session of some messages.
func session(name string, messages int, texts ...string) transcript.Transcript {
	t := transcript.Transcript{Name: name}
	for i := range messages {
		role := []recall.Role{recall.User, recall.Assistant}[i%2]
		t.Drafts = append(t.Drafts, recall.Draft{Role: role, Content: []recall.Part{{Type: recall.Text,
			Text: fmt.Sprint("Message ", i, strings.Join(texts, " "))}}})
	}
	return t
}

// letta is a request to replay sessions under one policy in one window.
func letta(sessions ...transcript.Transcript) replay.Request {
	return replay.Request{Sessions: sessions, Policies: []json.RawMessage{json.RawMessage(`"letta"`)},
		Windows: []int{8_000}}
}

func (f *fixture) create(r replay.Request) replay.Replay {
	f.Helper()
	created, err := f.store.Create(f.Context(), f.org, r)
	if err != nil {
		f.Fatal(err)
	}
	return created
}

func (f *fixture) read(id string) replay.Replay {
	f.Helper()
	r, err := f.store.Replay(f.Context(), f.org, id)
	if err != nil {
		f.Fatal(err)
	}
	return r
}

// work does the work of all slices of a replay from first on. It returns the number of the next slice.
func (f *fixture) work(id string, first int) int {
	f.Helper()
	for ; f.read(id).Status == replay.Running; first++ {
		if err := f.store.WorkSlice(f.Context(), f.org, id, first); err != nil {
			f.Fatal(err)
		}
	}
	return first
}

func one[T any](f *fixture, sql string, args ...any) T {
	f.Helper()
	got, err := db.One[T](f.Context(), f.pool, sql, args...)
	if err != nil {
		f.Fatal(err)
	}
	return got
}

// The sizes of a request have limits. At its limit a size is accepted.
func TestSizesOfARequest(t *testing.T) {
	t.Parallel()
	many := func(sessions, messages int) (all []transcript.Transcript) {
		for range sessions {
			all = append(all, transcript.Transcript{Drafts: make([]recall.Draft, messages)})
		}
		return all
	}
	for _, c := range []struct {
		name     string
		sessions []transcript.Transcript
		each     int // policies and windows
		want     string
	}{
		{"no session", nil, 1, "nothing to replay"},
		{"the most sessions", many(100, 1), 1, ""},
		{"a session more", many(101, 1), 1, "at most 100"},
		{"the most parts", many(100, 1), 10, ""},
		{"a policy more", many(100, 1), 11, "at most 1000"},
		{"the most messages", many(10, 5_000), 1, ""},
		{"a message more", append(many(10, 5_000), many(1, 1)...), 1, "at most 50000"},
		{"the most steps", many(1, 50_000), 200, ""},
		{"a step too many", many(1, 50_000), 201, "at most 10000000"},
	} {
		messages, err := replay.Request{Sessions: c.sessions}.Check(c.each)
		if c.want == "" && (err != nil || messages != len(c.sessions)*len(c.sessions[0].Drafts)) {
			t.Errorf("%s: got %d messages, %v", c.name, messages, err)
		}
		if c.want != "" && (!errors.Is(err, db.ErrInvalid) || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want ErrInvalid with %q", c.name, err, c.want)
		}
	}
}

// A request that is not valid stores nothing.
func TestRefusedReplaysStoreNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, change := range map[string]func(*replay.Request){
		"no sessions":                  func(r *replay.Request) { r.Sessions = nil },
		"too many sessions":            func(r *replay.Request) { r.Sessions = make([]transcript.Transcript, 101) },
		"neither windows nor ratios":   func(r *replay.Request) { r.Windows = nil },
		"an unknown policy":            func(r *replay.Request) { r.Policies[0] = json.RawMessage(`"nobody"`) },
		"a policy that is no JSON":     func(r *replay.Request) { r.Policies[0] = json.RawMessage(`{`) },
		"a model without an endpoint":  func(r *replay.Request) { r.Model = "m" },
		"too many policies by windows": func(r *replay.Request) { r.Windows = make([]int, 1_001); number(r.Windows) },
	} {
		r := letta(session("s", 2))
		change(&r)
		if _, err := f.store.Create(t.Context(), f.org, r); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("%s: got %v, want ErrInvalid", name, err)
		}
	}
	f.store.Models = func(context.Context, string) *summary.Model { return nil }
	r := letta(session("s", 2))
	r.Model = "m"
	if _, err := f.store.Create(t.Context(), f.org, r); !errors.Is(err, db.ErrInvalid) {
		t.Errorf("a model that does not exist: got %v, want ErrInvalid", err)
	}
	if list, err := f.store.Replays(t.Context(), f.org, 10); err != nil || len(list) != 0 {
		t.Errorf("stored are %+v, %v", list, err)
	}
}

func number(list []int) {
	for i := range list {
		list[i] = 1_000 + i
	}
}

// A session is replayed once under each policy in each window, and once at each ratio. Values that repeat count once.
// Without policies, all presets are used.
func TestPartsOfAReplay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := letta(session("a", 3), session("b", 2))
	r.Policies = append(r.Policies, json.RawMessage(`"pi"`), json.RawMessage(` "letta"`))
	r.Windows, r.Ratios = []int{8_000, 16_000, 8_000}, []float64{0.5, 0.25, 0.5}
	if got := f.create(r); got.Parts != 12 || got.Steps != 5*6 || got.PartsDone != 0 || got.StepsDone != 0 ||
		got.Status != replay.Running {
		t.Errorf("got %+v, want 12 parts of 30 steps", got)
	}
	r.Policies, r.Windows, r.Ratios = nil, []int{8_000}, nil
	if got, want := f.create(r).Parts, 2*len(policy.Presets()); got != want {
		t.Errorf("without policies there are %d parts, want %d", got, want)
	}
}

// An organization has at most 5 replays that run, and 100 in all. Those of others do not count.
func TestAnOrganizationHasRoomForSomeReplays(t *testing.T) {
	t.Parallel()
	f, other := newFixture(t), newFixture(t)
	var last string
	for range replay.MaxRunning {
		last = f.create(letta(session("s", 1))).ID
	}
	refused := func(want string) {
		t.Helper()
		if _, err := f.store.Create(t.Context(), f.org, letta(session("s", 1))); !errors.Is(err, db.ErrConflict) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want ErrConflict with %q", err, want)
		}
	}
	refused("5 replays run")
	other.create(letta(session("s", 1)))
	if err := f.store.Fail(t.Context(), f.org, last, "it broke"); err != nil {
		t.Fatal(err)
	}
	f.create(letta(session("s", 1)))
	one[int](f, `WITH more AS (
			INSERT INTO replays (org, status, prices, steps)
			SELECT $1, 'done', '{}', 1 FROM generate_series(1, $2) RETURNING 1 AS n)
		SELECT count(*) FROM more`, f.org, replay.MaxKept-6)
	refused("There are 100 replays")
	if err := f.store.Delete(t.Context(), f.org, last); err != nil {
		t.Fatal(err)
	}
	refused("5 replays run")
}

// A slice works for its time, at least one message, and commits. A slice that another server has committed changes
// nothing, so that no message counts twice.
func TestSlicesOfAReplay(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create(letta(session("first", 3), session("second", 2)))
	for slice := range 3 {
		for range 2 { // the second time, the slice was committed already
			if err := f.store.WorkSlice(t.Context(), f.org, r.ID, slice); err != nil {
				t.Fatal(err)
			}
		}
		got := f.read(r.ID)
		if got.StepsDone != slice+1 || got.PartsDone != (slice+1)/3 || got.Status != replay.Running {
			t.Errorf("after slice %d: %+v", slice, got)
		}
	}
	if _, err := f.store.Report(t.Context(), f.org, r.ID); !errors.Is(err, db.ErrConflict) ||
		!strings.Contains(err.Error(), "3 of 5 messages") {
		t.Errorf("the report of a replay that runs: %v, want ErrConflict", err)
	}
	if slices := f.work(r.ID, 3); slices != 5 {
		t.Errorf("the replay ended with %d slices, want one for each of 5 messages", slices)
	}
	got := f.read(r.ID)
	if got.Status != replay.Done || got.StepsDone != 5 || got.PartsDone != 2 || got.EndedAt == nil || got.Why != nil {
		t.Errorf("at its end it is %+v", got)
	}
	if err := f.store.WorkSlice(t.Context(), f.org, r.ID, 5); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("a slice after the end: got %v, want ErrNotFound", err)
	}
	inOne := f.create(letta(session("first", 3), session("second", 2)))
	f.store.Slice = time.Hour
	if slices := f.work(inOne.ID, 0); slices != 2 {
		t.Errorf("with more time, %d slices are needed, want one for each part", slices)
	}
	a, errA := f.store.Report(t.Context(), f.org, r.ID)
	b, errB := f.store.Report(t.Context(), f.org, inOne.ID)
	for _, report := range []*lab.Report{&a, &b} {
		for i := range report.Results {
			report.Results[i].Wall = 0
		}
	}
	if diff := cmp.Diff(a, b); diff != "" || errA != nil || errB != nil {
		t.Errorf("%v, %v; slices measure otherwise (-many +one):\n%s", errA, errB, diff)
	}
	if len(a.Results) != 2 || a.Results[0].Session != "first" || a.Results[1].Session != "second" ||
		len(a.Policies) != 1 || a.Policies[0].Name != "letta" || len(a.Sessions) != 2 {
		t.Errorf("the report is %+v", a)
	}
}

// meanwhile is a database that lets something happen before its first transaction.
type meanwhile struct {
	db.DB
	do func()
}

func (m *meanwhile) Begin(ctx context.Context) (pgx.Tx, error) {
	if do := m.do; do != nil {
		m.do = nil
		do()
	}
	return m.DB.Begin(ctx)
}

// If two servers work on the same slice, only the first commit counts.
func TestASliceIsCommittedOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create(letta(session("s", 3)))
	slow := *f.store
	slow.DB = &meanwhile{DB: f.pool, do: func() {
		if err := f.store.WorkSlice(t.Context(), f.org, r.ID, 0); err != nil {
			t.Error(err)
		}
	}}
	if err := slow.WorkSlice(t.Context(), f.org, r.ID, 0); err != nil {
		t.Fatal(err)
	}
	if got := f.read(r.ID); got.StepsDone != 1 {
		t.Errorf("%d messages count as replayed, want 1", got.StepsDone)
	}
	f.work(r.ID, 1)
	if n := one[int](f, `SELECT count(*) FROM replay_parts WHERE org = $1 AND saved IS NOT NULL`, f.org); n != 0 {
		t.Errorf("the state of %d parts is kept after the end", n)
	}
}

// A replay fails once, with the reason, and only while it runs.
func TestAReplayFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	r := f.create(letta(session("s", 2)))
	for _, why := range []string{"it broke", "again"} {
		if err := f.store.Fail(t.Context(), f.org, r.ID, why); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.read(r.ID); got.Status != replay.Failed || got.Why == nil || *got.Why != "it broke" || got.EndedAt == nil {
		t.Errorf("got %+v, want it failed for its first reason", got)
	}
	if err := f.store.WorkSlice(t.Context(), f.org, r.ID, 0); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("a slice of a replay that failed: got %v, want ErrNotFound", err)
	}
	if report, err := f.store.Report(t.Context(), f.org, r.ID); err != nil || len(report.Results) != 0 {
		t.Errorf("its report: %+v, %v, want one without results", report, err)
	}
}

// Create queues the first slice in the same transaction, each slice the next, and the last none.
func TestASliceQueuesTheNext(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	jobs := queuetest.Jobs(t, f.pool, f.org, river.Config{})
	f.store.Jobs = func() *river.Client[pgx.Tx] { return jobs }
	queued := func() string {
		return one[string](f, `
			SELECT coalesce(string_agg(args ->> 'slice', ' ' ORDER BY id), '') FROM river_job WHERE queue = $1`,
			queuetest.Name(f.org, "replay"))
	}
	r := f.create(letta(session("s", 2)))
	for i, want := range []string{"0", "0 1", "0 1"} {
		if got := queued(); got != want {
			t.Errorf("after %d slices: the slices %q are queued, want %q", i, got, want)
		}
		if i < 2 {
			if err := f.store.WorkSlice(t.Context(), f.org, r.ID, i); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := f.store.Create(t.Context(), f.org, letta()); err == nil || queued() != "0 1" {
		t.Errorf("a refused replay: %v; queued are %q", err, queued())
	}
}

// Replays are listed from the newest, up to a limit. Another organization has none of them.
func TestReplaysOfAnOrganization(t *testing.T) {
	t.Parallel()
	f, other := newFixture(t), newFixture(t)
	first, second := f.create(letta(session("s", 1))).ID, f.create(letta(session("s", 1))).ID
	list, err := f.store.Replays(t.Context(), f.org, 10)
	if err != nil || len(list) != 2 || list[0].ID != second || list[1].ID != first {
		t.Errorf("got %+v, %v, want %s and %s", list, err, second, first)
	}
	if list, err := f.store.Replays(t.Context(), f.org, 1); err != nil || len(list) != 1 || list[0].ID != second {
		t.Errorf("with a limit of 1: got %+v, %v", list, err)
	}
	if list, err := other.store.Replays(t.Context(), other.org, 10); err != nil || len(list) != 0 {
		t.Errorf("another organization: got %+v, %v", list, err)
	}
	_, read := other.store.Replay(t.Context(), other.org, first)
	_, reported := other.store.Report(t.Context(), other.org, first)
	deleted := other.store.Delete(t.Context(), other.org, first)
	for what, err := range map[string]error{"read": read, "report": reported, "delete": deleted} {
		if !errors.Is(err, db.ErrNotFound) {
			t.Errorf("%s by another organization: got %v, want ErrNotFound", what, err)
		}
	}
	if err := f.store.Delete(t.Context(), f.org, first); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Delete(t.Context(), f.org, first); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("a second deletion: got %v, want ErrNotFound", err)
	}
}

// What is stored of a session has no secrets, no texts of its questions, and no characters that Postgres refuses.
func TestASessionIsCleanedBeforeItIsStored(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	secret := "sk-ant-api03-" + strings.Repeat("Ab3dE5gH", 11) + "AA"
	s := session("na\x00me", 2, " with ", secret)
	s.Session, s.Prompts = "session\x00", []transcript.Prompt{{Answer: 1, Tokens: 5, Model: "model\x00"}}
	s.System, s.LeftOut = "Be brief. "+secret, map[string]int{"thought\x00s": 2}
	s.Evidence = []transcript.Question{{Text: "the question", Answer: "the answer", Evidence: []string{"id\x00 1"}}}
	f.create(letta(s))
	stored := one[string](f, `SELECT transcript::text FROM replay_sessions WHERE org = $1`, f.org)
	for _, not := range []string{secret, "the question", "the answer", `\u0000`} {
		if strings.Contains(stored, not) {
			t.Errorf("%q is stored", not)
		}
	}
	for _, want := range []string{"Be brief.", "Message 1", "na␀me", "thought␀s", "id␀ 1", "session␀", "model␀"} {
		if !strings.Contains(stored, want) {
			t.Errorf("%q is not stored: %s", want, stored)
		}
	}
}
