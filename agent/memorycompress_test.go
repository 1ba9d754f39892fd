package agent_test

import (
	"context"
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/compaction/summary"
	memoryfile "github.com/loci-memory/loci/memory/file"
)

// If a model is configured, it sorts the lines of an index. If its answer has another form, the answer is not used, and
// the proposal says so.
func TestAModelCompressesMemory(t *testing.T) {
	t.Parallel()
	s, _ := newStore(t)
	a := create(t, s, agent.New{Name: "a"})
	tree, err := s.MemoryFiles.Writable(t.Context(), s.org, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	at := memoryfile.At{Org: s.org, Tree: tree.ID}
	text := "# Memory\n\nThe staging host is s2.\nAda likes tea.\n"
	for _, w := range []struct{ name, answer, how, why, path string }{
		{"an answer", `Here: {"topics":[{"path":"/memories/infra/staging.md","title":"Staging","lines":[[3,3]]}]}`, "model",
			"", "/memories/infra/staging.md"},
		{"no JSON", "I cannot do that.", "headings", "has no topics", "/memories/infra/memory.md"},
		{"no topics", `{"topics":[]}`, "headings", "has no topics", "/memories/infra/memory.md"},
		{"wrong types", `{"topics":[{"path":7}]}`, "headings", "has no topics", "/memories/infra/memory.md"},
		{"no answer", "", "headings", "did not answer", "/memories/infra/memory.md"},
		{"no model", "", "headings", "", "/memories/infra/memory.md"},
	} {
		model := summary.Model{Summarizer: &proposer{answer: w.answer}}
		if w.name == "no answer" {
			model.Summarizer = failing{}
		}
		s.Compaction.Models = func(context.Context, string) *summary.Model { return &model }
		if w.name == "no model" {
			s.Compaction.Models = nil
		}
		p, err := s.CompressMemory(t.Context(), at, &text)
		if err != nil {
			t.Fatal(err)
		}
		why := ""
		if p.Why != nil {
			why = *p.Why
		}
		if p.How != w.how || !strings.Contains(why, w.why) || (why == "") != (w.why == "") || p.Files[0].Path != w.path {
			t.Errorf("%s: got %s %q and %s, want %s %q and %s", w.name, p.How, why, p.Files[0].Path, w.how, w.why, w.path)
		}
		all := ""
		for _, f := range p.Files {
			all += f.Content
		}
		if !strings.Contains(all, "The staging host is s2.") || !strings.Contains(all, "Ada likes tea.") {
			t.Errorf("%s: a line is lost: %s", w.name, all)
		}
	}
}

// failing is a model that always fails.
type failing struct{}

// Complete implements summary.Summarizer.
func (failing) Complete(context.Context, summary.Request) (summary.Reply, error) {
	return summary.Reply{}, context.DeadlineExceeded
}
