package files_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
)

// limitsOf returns options that give every agent the limits l.
func limitsOf(l files.Limits) files.Options {
	return files.Options{Limits: func(_ context.Context, _ db.DB, _ db.Org,
		ids []string) (map[string]files.Limits, error) {
		all := map[string]files.Limits{}
		for _, id := range ids {
			all[id] = l
		}
		return all, nil
	}}
}

// The files that an attachment opens show at most a tenth of the window together: whole ones first, then one that is
// cut. A file that the agent opens itself has the limits of its tier.
func TestWhatOpensByItselfShowsATenthOfTheWindow(t *testing.T) {
	t.Parallel()
	windows := []int{0, 8_192, 32_768, 128_000, 200_000, 1_000_000}
	agents := map[string]files.Limits{}
	fx := newOwnFixture(t, files.Options{Limits: func(context.Context, db.DB, db.Org,
		[]string) (map[string]files.Limits, error) {
		return agents, nil
	}}, files.Queues())
	folder := fx.coarselyCut("f")
	text := manyLines(5000)
	for i := range 5 {
		fx.upload(folder, fmt.Sprint(i, ".md"), text)
	}
	ids := make([]string, len(windows))
	for i, window := range windows {
		ids[i] = fx.agent()
		agents[ids[i]] = files.LimitsFor(window)
		if err := fx.attach(ids[i], folder.ID, agents[ids[i]]); err != nil {
			t.Fatal(err)
		}
	}
	fx.upload(folder, "late.md", text)
	for i, window := range windows {
		agent, l := ids[i], files.LimitsFor(window)
		room := max(window, 32_768) / 10
		if window > 0 {
			room = window / 10
		}
		views := fx.views(agent, l)
		chars, cut := 0, 0
		for _, v := range views {
			chars += len(v.Text)
			if len(v.Text) < l.ViewChars*9/10 {
				cut++
			}
		}
		if chars/4 > room || cut > 1 || len(views) == 0 || len(views) < 5 && cut == 0 && chars/4 < room-l.ViewChars/4 {
			t.Errorf("window %d: %d files show %d tokens, %d of them cut; want at most %d tokens and one cut", window,
				len(views), chars/4, cut, room)
		}
		fx.mustOpen(agent, l, false, "f/0.md")
		for _, v := range fx.views(agent, l) {
			if v.FileName == "f/0.md" && len(v.Text) < l.ViewChars*9/10 {
				t.Errorf("window %d: the file that the agent opened shows %d characters, want %d", window, len(v.Text),
					l.ViewChars)
			}
		}
	}
}

func (fx *fixture) views(agent string, l files.Limits) []files.OpenView {
	fx.t.Helper()
	views, err := fx.Views(fx.t.Context(), fx.org, files.Of(agent), l)
	if err != nil {
		fx.t.Fatal(err)
	}
	return views
}

func TestShortFilesOpenByThemselvesWhole(t *testing.T) {
	t.Parallel()
	l := files.LimitsFor(8_192)
	fx := newOwnFixture(t, limitsOf(l), files.Queues())
	folder := fx.folder("f")
	for i := range 3 {
		fx.upload(folder, fmt.Sprint(i, ".md"), strings.Repeat("a short line\n", 20))
	}
	agent := fx.agent()
	if err := fx.attach(agent, folder.ID, l); err != nil {
		t.Fatal(err)
	}
	for _, v := range fx.views(agent, l) {
		if v.Truncated {
			t.Errorf("%s is cut: %s", v.FileName, v.Text)
		}
	}
	if diff := cmp.Diff([]string{"f/0.md", "f/1.md", "f/2.md"}, fx.open(agent)); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
}

// The attachment decides whether files open by themselves, now and after an upload. If it does not say, the agent does.
func TestNothingOpensByItselfWhereItShallNot(t *testing.T) {
	t.Parallel()
	for _, agentOpens := range []bool{true, false} {
		l := files.Limits{MaxOpen: 5, ViewChars: 1000, OpensNone: !agentOpens}
		fx := newOwnFixture(t, limitsOf(l), files.Queues())
		folder := fx.folder("f")
		fx.upload(folder, "a.txt", "text\n")
		agents := map[string]bool{}
		for opens, want := range map[*bool]bool{nil: agentOpens, new(true): true, new(false): false} {
			id := fx.agent()
			agents[id] = want
			err := fx.Attach(t.Context(), fx.org, files.Attachment{AgentID: id, FolderID: folder.ID, Opens: opens, Limits: l})
			if err != nil {
				t.Fatal(err)
			}
		}
		fx.upload(folder, "b.txt", "text\n")
		for id, want := range agents {
			if open := fx.open(id); (len(open) == 2) != want || (len(open) == 0) == want {
				t.Errorf("agent %t, files open %t: %q are open", agentOpens, want, open)
			}
		}
	}
}

// A prompt names twenty closed files, some from every folder.
func TestTwentyClosedFilesAreNamed(t *testing.T) {
	t.Parallel()
	fx := newFixture(t)
	many, few := fx.folder("many"), fx.folder("few")
	for i := range 25 {
		fx.store(many, fmt.Sprintf("%02d.txt", i), "text\n")
	}
	for i := range 3 {
		fx.store(few, fmt.Sprint(i, ".txt"), "text\n")
	}
	agent := fx.agentWith(many, few)
	directories, err := fx.Directories(t.Context(), fx.org, files.Of(agent), files.LimitsFor(128_000))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, d := range directories {
		got = append(got, fmt.Sprintf("%s: %d files, %d more", d.Folder.Name, len(d.Files), d.More))
	}
	if diff := cmp.Diff([]string{"few: 3 files, 0 more", "many: 17 files, 8 more"}, got); diff != "" {
		t.Errorf("directories (-want +got):\n%s", diff)
	}
}
