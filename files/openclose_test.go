package files_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// fileSet uploads n files named 0.txt, 1.txt, … to a folder and attaches it to an agent with no file open.
func (fx *fixture) fileSet(n int) (folder files.Folder, agentID string) {
	fx.t.Helper()
	folder = fx.folder("set")
	sent := make([]files.File, n)
	for i := range n {
		sent[i] = fx.send(folder, fmt.Sprintf("%d.txt", i), fmt.Sprintf("first line of %d\nsecond line\nthird line\n", i),
			files.Suffix)
	}
	for _, f := range sent {
		fx.await(folder, f)
	}
	return folder, fx.agentWith(folder)
}

func (fx *fixture) mustOpen(agentID string, l files.Limits, closeOthers bool, names ...string) files.Opening {
	fx.t.Helper()
	got, err := fx.Open(fx.t.Context(), fx.org, files.Of(agentID),
		files.OpenArgs{Limits: l, Requests: requests(names...), CloseOthers: closeOthers})
	if err != nil {
		fx.t.Fatalf("open %v: %v", names, err)
	}
	return got
}

func TestTheLeastRecentlyUsedFileIsClosed(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	_, agent := fx.fileSet(6)
	three := files.Limits{MaxOpen: 3, ViewChars: 1000}
	fx.mustOpen(agent, three, false, "set/0.txt", "set/1.txt", "set/2.txt")
	fx.mustOpen(agent, three, false, "set/0.txt") // used again
	got := fx.mustOpen(agent, three, false, "set/3.txt", "set/4.txt")
	if diff := cmp.Diff([]string{"set/1.txt", "set/2.txt"}, got.ClosedToLimit); diff != "" {
		t.Errorf("closed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"set/0.txt", "set/3.txt", "set/4.txt"}, fx.open(agent)); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
	// A match is a use.
	if _, err := fx.Grep(t.Context(), fx.org, files.Of(agent), files.GrepQuery{Pattern: "first line of 0"}); err != nil {
		t.Fatal(err)
	}
	fx.mustOpen(agent, three, false, "set/5.txt")
	if diff := cmp.Diff([]string{"set/4.txt", "set/0.txt", "set/5.txt"}, fx.open(agent)); diff != "" {
		t.Errorf("after a match in 0.txt (-want +got):\n%s", diff)
	}
	got = fx.mustOpen(agent, three, true, "set/1.txt")
	if diff := cmp.Diff([]string{"set/4.txt", "set/0.txt", "set/5.txt"}, got.ClosedOthers); diff != "" {
		t.Errorf("closed others (-want +got):\n%s", diff)
	}
	closed, err := fx.CloseAll(t.Context(), fx.org, files.Of(agent))
	if diff := cmp.Diff([]string{"set/1.txt"}, closed); diff != "" || err != nil || len(fx.open(agent)) != 0 {
		t.Errorf("close all: %v (-want +got):\n%s", err, diff)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder, agent := fx.fileSet(2)
	other := fx.folder("other")
	fx.upload(other, "0.txt", "x\n")
	fx.upload(folder, "only.md", "y\n")
	if err := fx.attach(agent, other.ID, files.Limits{}); err != nil {
		t.Fatal(err)
	}
	five := 5
	for name, c := range map[string]struct {
		reqs []files.OpenRequest
		want string
	}{
		"a file that is not attached": {requests("set/9.txt"), "set/9.txt not attached - did you get the filename correct? " +
			"Currently you have the following files attached: ['other/0.txt', 'set/0.txt', 'set/1.txt', 'set/only.md']"},
		"a name of two files": {requests("0.txt"), "0.txt fits several attached files"},
		"an offset past the end": {[]files.OpenRequest{{FileName: "set/0.txt", Offset: &five}},
			"File set/0.txt has only 3 lines: line 6, at offset 5, is past its end"},
		"more than the limit": {requests("set/0.txt", "set/1.txt", "other/0.txt"),
			"Cannot open 3 files: exceeds configured maximum limit of 2 files"},
		"one of two that is not there": {requests("set/0.txt", "nope"), "nope not attached"},
	} {
		_, err := fx.Open(t.Context(), fx.org, files.Of(agent),
			files.OpenArgs{Limits: files.Limits{MaxOpen: 2, ViewChars: 100}, Requests: c.reqs})
		if !errors.Is(err, db.ErrInvalid) || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %s…", name, err, c.want)
		}
	}
	if open := fx.open(agent); len(open) != 0 {
		t.Errorf("refused requests opened %v", open)
	}
	if n := fx.count(`SELECT count(*) FROM events WHERE agent_id = $1 AND type = 'file_opened'`, agent); n != 0 {
		t.Errorf("refused requests left %d events", n)
	}
	named := fx.folder(`R&D <"x">`)
	fx.upload(named, "plan.md", "z\n")
	if err := fx.attach(agent, named.ID, files.Limits{}); err != nil {
		t.Fatal(err)
	}
	if got := fx.mustOpen(agent, wide, false,
		`R&D <\"x\">/plan.md`); got.Files[0].Name != `R&D <"x">/plan.md` {
		t.Errorf("a name as the prompt shows it has opened %s", got.Files[0].Name)
	}
	if got := fx.mustOpen(agent, wide, false, "only.md"); got.Files[0].Name != "set/only.md" {
		t.Errorf("a name that one file has opened %s", got.Files[0].Name)
	}
}

func TestWhatWasOpenBeforeIsTold(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	_, agent := fx.fileSet(1)
	zero, one, two := 0, 1, 2
	open := func(r files.OpenRequest) files.Opened {
		t.Helper()
		r.FileName = "set/0.txt"
		got, err := fx.Open(t.Context(), fx.org, files.Of(agent),
			files.OpenArgs{Limits: wide, Requests: []files.OpenRequest{r}})
		if err != nil {
			t.Fatal(err)
		}
		return got.Files[0]
	}
	if got := open(files.OpenRequest{Offset: &one, Length: &one}); got.WasOpen || got.Previous != nil ||
		got.FirstLine != 2 || got.LastLine != 2 ||
		got.Content != "[Viewing lines 2 to 2 (out of 3 lines)]\n2: second line" {
		t.Errorf("first: got %+v", got)
	}
	if got := open(files.OpenRequest{Offset: &one, Length: &one}); !got.WasOpen || got.Previous != nil {
		t.Errorf("the same again: got %+v", got)
	}
	if got := open(files.OpenRequest{Length: &two}); got.Previous == nil || got.Previous.Offset != 1 ||
		*got.Previous.Length != 1 || got.LastLine != 2 {
		t.Errorf("another range: got %+v", got)
	}
	if got := open(files.OpenRequest{Offset: &zero}); got.Previous == nil || got.LastLine != 3 {
		t.Errorf("to the end: got %+v", got)
	}
}

// Thirty-two calls on one agent, twelve at once: the limit holds after each, every call opens its file, and none blocks
// another forever.
func TestParallelOpensKeepTheLimit(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	_, agent := fx.fileSet(12)
	l := files.Limits{MaxOpen: 4, ViewChars: 1000}
	var calls errgroup.Group
	calls.SetLimit(12)
	for i := range 32 {
		calls.Go(func() error {
			random := rand.New(rand.NewPCG(7, uint64(i)))
			var names []string
			for _, n := range random.Perm(12)[:1+random.IntN(3)] {
				names = append(names, fmt.Sprintf("set/%d.txt", n))
			}
			got, err := fx.Open(context.Background(), fx.org, files.Of(agent),
				files.OpenArgs{Limits: l, Requests: requests(names...), CloseOthers: random.IntN(8) == 0})
			if err != nil || len(got.Files) != len(names) {
				return fmt.Errorf("open %v: got %d files (%w)", names, len(got.Files), err)
			}
			for _, closed := range append(got.ClosedOthers, got.ClosedToLimit...) {
				if slices.Contains(names, closed) {
					return fmt.Errorf("opening %v closed %s", names, closed)
				}
			}
			n, err := db.One[int](t.Context(), fx.pool, `
				SELECT count(*) FROM agent_files WHERE agent_id = $1 AND is_open`, agent)
			if n > l.MaxOpen {
				return fmt.Errorf("%d files are open at once, %d are allowed", n, l.MaxOpen)
			}
			return err
		})
	}
	if err := calls.Wait(); err != nil {
		t.Error(err)
	}
	opened := fx.count(`SELECT count(*) FROM events WHERE agent_id = $1 AND type = 'file_opened'`, agent)
	if head := fx.count(`SELECT seq FROM agent_heads WHERE agent_id = $1`,
		agent); head != fx.count(`SELECT count(*) FROM events WHERE agent_id = $1`, agent) || opened < 32 {
		t.Errorf("the head is %d, with %d openings", head, opened)
	}
}

func TestALowerLimitClosesTheOldest(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	_, agent := fx.fileSet(5)
	fx.mustOpen(agent, wide, false, "set/4.txt", "set/3.txt", "set/2.txt", "set/1.txt")
	closed, err := fx.Trim(t.Context(), fx.org, agent, files.Limits{MaxOpen: 2})
	if diff := cmp.Diff([]string{"set/4.txt", "set/3.txt"}, closed); diff != "" || err != nil {
		t.Errorf("trim: %v (-want +got):\n%s", err, diff)
	}
}

func TestAttachingAndDetaching(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder, _ := fx.fileSet(4)
	agent := fx.agent()
	two := files.Limits{MaxOpen: 2, ViewChars: 1000}
	for round := range 3 {
		for range 2 { // the second time changes nothing
			if err := fx.attach(agent, folder.ID, two); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if diff := cmp.Diff([]string{"set/0.txt", "set/1.txt"}, fx.open(agent)); diff != "" {
			t.Errorf("round %d: the first files open as far as there is room (-want +got):\n%s", round, diff)
		}
		for range 2 {
			if err := fx.Detach(t.Context(), fx.org, agent, folder.ID); err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		if open := fx.open(agent); len(open) != 0 {
			t.Errorf("round %d: %v is open of a folder that is not attached", round, open)
		}
	}
	if err := fx.attach("agent-none", folder.ID, two); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("no agent: got %v, want ErrNotFound", err)
	}
	if err := fx.attach(agent, "source-none", two); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("no folder: got %v, want ErrNotFound", err)
	}
}

func TestDeletingClosesInEveryAgent(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder, first := fx.fileSet(2)
	second := fx.agentWith(folder)
	list, err := fx.Files(t.Context(), fx.org, files.Filter{FolderID: folder.ID}, false, db.Page{Ascending: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, agent := range []string{first, second} {
		fx.mustOpen(agent, wide, false, "set/0.txt", "set/1.txt")
	}
	if err := fx.DeleteFile(t.Context(), fx.org, folder.ID, list[0].ID); err != nil {
		t.Fatal(err)
	}
	for _, agent := range []string{first, second} {
		if diff := cmp.Diff([]string{"set/1.txt"}, fx.open(agent)); diff != "" {
			t.Errorf("after the file is deleted (-want +got):\n%s", diff)
		}
		if n := fx.count(`SELECT count(*) FROM events WHERE agent_id = $1 AND type = 'file_closed' AND ref_id = $2`, agent,
			list[0].ID); n != 1 {
			t.Errorf("the closing is %d events", n)
		}
	}
	if err := fx.DeleteFolder(t.Context(), fx.org, folder.ID); err != nil {
		t.Fatal(err)
	}
	fx.eventually("no row outlives its folder", func() bool {
		return fx.rows("agent_files")+fx.rows("agent_folders")+fx.rows("chunks")+fx.rows("file_segments")+
			fx.rows("file_originals")+fx.rows("folders") == 0
	})
}

func TestANewFileOpensWhereThereIsRoom(t *testing.T) {
	t.Parallel()
	limits := map[string]files.Limits{}
	fx := newOwnFixture(t, files.Options{Limits: func(_ context.Context, _ db.DB, _ db.Org,
		ids []string) (map[string]files.Limits, error) {
		return limits, nil
	}}, files.Queues())
	folder := fx.folder("f")
	roomy, full := fx.agentWith(folder), fx.agentWith(folder)
	limits[roomy], limits[full] = files.Limits{MaxOpen: 2}, files.Limits{MaxOpen: 1}
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		fx.upload(folder, name, name)
	}
	if diff := cmp.Diff([]string{"f/a.txt", "f/b.txt"}, fx.open(roomy)); diff != "" {
		t.Errorf("roomy (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"f/a.txt"}, fx.open(full)); diff != "" {
		t.Errorf("full (-want +got):\n%s", diff)
	}
}

// If an agent's room fills up between the check and the lock, the agent keeps the files that it opened itself.
func TestANewFileTakesNobodysPlace(t *testing.T) {
	t.Parallel()
	var many sync.Map // agents that have less room when they are asked for alone
	fx := newOwnFixture(t, files.Options{Limits: func(_ context.Context, _ db.DB, _ db.Org,
		ids []string) (map[string]files.Limits, error) {
		limits := map[string]files.Limits{}
		for _, id := range ids {
			_, asked := many.LoadOrStore(id, true)
			limits[id] = files.Limits{MaxOpen: 2}
			if asked {
				limits[id] = files.Limits{MaxOpen: 1}
			}
		}
		return limits, nil
	}}, files.Queues())
	folder := fx.folder("f")
	fx.upload(folder, "own.txt", "text\n")
	agent := fx.agent()
	if err := fx.attach(agent, folder.ID, files.Limits{}); err != nil { // opens own.txt
		t.Fatal(err)
	}
	many.Clear()
	fx.upload(folder, "new.txt", "text\n")
	if diff := cmp.Diff([]string{"f/own.txt"}, fx.open(agent)); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
}

// Open files share 60 % of the window. Beyond that, the least recently used is cut first, and says so.
func TestOpenFilesKeepToTheirShareOfTheWindow(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	folder := fx.folder("f")
	for _, name := range []string{"old.txt", "new.txt"} {
		fx.upload(folder, name, manyLines(400)) // about 8,500 characters in view
	}
	agent := fx.agentWith(folder)
	l := files.Limits{MaxOpen: 5, ViewChars: 15_000, WindowTokens: 5000} // 12,000 characters for files
	fx.mustOpen(agent, l, false, "f/old.txt")
	fx.mustOpen(agent, l, false, "f/new.txt")
	views, err := fx.Views(t.Context(), fx.org, files.Of(agent), l)
	if err != nil || len(views) != 2 {
		t.Fatalf("views: %d (%v)", len(views), err)
	}
	oldChars, newChars := len(views[0].Text), len(views[1].Text)
	if !views[0].Truncated || views[1].Truncated || oldChars+newChars > 12_000 {
		t.Errorf("old has %d characters (cut: %v), new %d (cut: %v); want the old one cut, 12,000 together", oldChars,
			views[0].Truncated,
			newChars, views[1].Truncated)
	}
	if !strings.Contains(views[0].Text, "not shown. To go on, open line ") {
		t.Errorf("a shortened view does not say how to go on: …%s", views[0].Text[max(0, oldChars-200):])
	}
}
