package agent_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
)

// If blocks and open files leave less than a quarter of the window to messages, the views of files shrink, the least
// recently used first, down to stubs. Each shrunk view says so. Blocks stay whole.
func TestOpenFilesYieldToMessages(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	documents := folder(t, s, "f", strings.Repeat("日本語 and some words of it\n", 300), numbered("%d.txt", 3))
	const window = 16_000
	for _, c := range []struct {
		name       string
		block      int // characters of a block
		cut, stubs int // numbers of views that are cut, and that are stubs
	}{
		{"a small block", 100, 1, 0},
		{"a large one", 10_000, 1, 0},
		{"a larger one", 30_000, 2, 1},
		{"one that leaves nothing", 60_000, 3, 3},
	} {
		a := create(t, s, agent.New{Name: "a", System: "Begin.", WindowLimit: new(window), FolderIDs: []string{documents.ID},
			Blocks: []block.New{{Label: "b", Value: strings.Repeat("word ", c.block/5)}}})
		reqs := []files.OpenRequest{{FileName: "f/0.txt"}, {FileName: "f/1.txt"}, {FileName: "f/2.txt"}}
		if _, err := s.Files.Open(t.Context(), s.org, files.Of(a.ID),
			files.OpenArgs{Requests: reqs, Limits: a.Limits()}); err != nil {
			t.Fatal(err)
		}
		o, _, err := s.Overview(t.Context(), s.org, a.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		fixed := o.WindowCurrent - o.TokensMessages
		if fixed > window*3/4 {
			t.Errorf("%s: the fixed parts take %d of %d tokens, want at most three quarters", c.name, fixed, window)
		}
		if c.stubs < 3 && fixed < window*3/4*8/10 {
			t.Errorf("%s: the fixed parts take %d of %d tokens, want no more cut than must be", c.name, fixed, window)
		}
		if whole := strings.Contains(o.CoreMemory, strings.Repeat("word ", c.block/5)); whole != (c.stubs < 3) ||
			whole == strings.Contains(o.CoreMemory, "characters are shown. The window has no room for more.]") {
			t.Errorf("%s: the block is whole: %t", c.name, whole)
		}
		var cut, stubs int
		views := strings.Split(*o.Directories, "<value>")[1:]
		for i, v := range views {
			if strings.Contains(v, "NOTE: This view is cut") {
				cut++
			}
			if len([]rune(v)) < 700 {
				stubs++
			}
			if i > 0 && len(v) < len(views[i-1])-100 {
				t.Errorf("%s: view %d is shorter than the one before it, which was used less recently", c.name, i)
			}
		}
		if cut != c.cut || stubs != c.stubs {
			t.Errorf("%s: %d views are cut, %d to stubs; want %d and %d", c.name, cut, stubs, c.cut, c.stubs)
		}
		if h := handOut(t, s, a, ""); h.Tokens.Directories != o.TokensDirectories {
			t.Errorf("%s: handed out with directories of %d tokens, want the %d of the overview", c.name, h.Tokens.Directories,
				o.TokensDirectories)
		}
	}
}

// In a small window, files whose characters take many tokens leave room for messages, too.
func TestOpenFilesOfManyTokensYield(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	for what, content := range map[string]string{"Japanese": strings.Repeat("日本語の文章です。\n", 3000),
		"signs in one line": strings.Repeat("🙂🚀", 9000), "base64 in one line": strings.Repeat("Qm9vbQ8zX1", 2000)} {
		documents := folder(t, s, what, content, numbered("%d.txt", 3))
		a := create(t, s, agent.New{Name: "a", WindowLimit: new(4_096), Model: new("qwen/qwen2.5-7b"),
			FolderIDs: []string{documents.ID}})
		say(t, s, a, said(recall.User, "Hello."))
		for i := range 3 {
			reqs := []files.OpenRequest{{FileName: fmt.Sprintf("%s/%d.txt", what, i)}}
			if _, err := s.Files.Open(t.Context(), s.org, files.Of(a.ID),
				files.OpenArgs{Requests: reqs, Limits: a.Limits()}); err != nil {
				t.Fatal(err)
			}
			p, err := s.NextPrompt(t.Context(), s.org, agent.PromptTarget{AgentID: a.ID})
			if err != nil || p.Tokens.Total > 4_096*3/4+200 {
				t.Errorf("%s: with %d open files the prompt has %d tokens, %v", what, i+1, p.Tokens.Total, err)
			}
		}
	}
}
