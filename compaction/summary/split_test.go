package summary_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
)

// A summary with lists of files has one of each kind, also of the files of a turn that the cut divides. The next
// compaction carries them.
func TestADividedTurnKeepsItsFiles(t *testing.T) {
	t.Parallel()
	read := func(k *talk, path string) {
		id := fmt.Sprint("call-", path)
		k.add(recall.Assistant, recall.Part{Type: recall.ToolCall, CallID: id, Name: "read",
			Input: fmt.Sprintf(`{"path":%q}`, path)})
		k.add(recall.Tool, result(id, strings.Repeat("line of the file\n", 20)))
	}
	said := func(k *talk, role recall.Role, text string) {
		k.add(role, recall.Part{Type: recall.Text, Text: text})
	}
	format := &prose.Format{Files: true, Sections: []prose.FormatSection{{Heading: "## Goal", From: []string{"requests"}},
		{Heading: "## Progress", From: []string{"findings", "state"}}}}
	for name, history := range map[string]bool{"with a history": true, "without": false} {
		k := newTalk(1)
		if history {
			said(k, recall.User, "Please read the first file.")
			read(k, "old.go")
			said(k, recall.Assistant, "It declares the first type.")
		}
		split := k.position + 1
		said(k, recall.User, "Please read the other files and mend what is wrong.")
		read(k, "a.go")
		read(k, "b.go")
		summarized := func(e clip.Evicted) string {
			e.Budget, e.Format = 4_000, format
			return extracted(t, e).Text
		}
		first := extracted(t, clip.Evicted{Messages: k.messages, Budget: 4_000,
			Making: prose.Making{Split: split, Format: format}})
		want := []string{"a.go", "b.go"}
		if history {
			want = append(want, "old.go")
		}
		check := func(what, text string, paths []string) {
			t.Helper()
			list := "<" + prose.ReadTag + ">\n" + strings.Join(paths, "\n") + "\n</"
			if strings.Count(text, list) != 1 || strings.Count(text, "<"+prose.ReadTag+">") != 1 {
				t.Errorf("%s, %s: want one list of %v in\n%s", name, what, paths, text)
			}
		}
		check("the first summary", first.Text, want)
		later := newTalk(2)
		later.position, later.seq = k.position, k.seq
		read(later, "c.go")
		said(later, recall.Assistant, "The third file is fine.")
		want = append(want[:2:2], append([]string{"c.go"}, want[2:]...)...)
		check("the second summary", summarized(clip.Evicted{Messages: later.messages, Previous: &first}), want)
	}
}
