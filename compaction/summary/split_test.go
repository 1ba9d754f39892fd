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

// An extraction quotes the request that is not done, with what the assistant said it would do next, in a format that
// asks for a next step.
func TestTheNextStepIsQuoted(t *testing.T) {
	t.Parallel()
	format := &prose.Format{Sections: []prose.FormatSection{{Heading: "8. Now:", From: []string{"state"}},
		{Heading: "9. Next:", From: []string{"next"}}}}
	for name, c := range map[string]struct {
		said []string // by the user and the assistant in turn
		want string   // behind the number of the message; empty: there is no such section
	}{
		"under way": {[]string{"Please mend the importer and the exporter.",
			"The importer is mended. I'll mend the exporter next."},
			`Please mend the importer and the exporter. The assistant: I'll mend the exporter next.`},
		"in German": {[]string{"Bitte prüfe beide Listen.",
			"Die erste stimmt mit dem Bestand überein. Als Nächstes prüfe ich die zweite."},
			`Bitte prüfe beide Listen. The assistant: Als Nächstes prüfe ich die zweite.`},
		"not begun": {[]string{"Hello.", "Good morning.", "Count the herons in the reeds."},
			`Count the herons in the reeds.`},
		"done":              {[]string{"Count the herons.", "There are seven herons."}, ""},
		"only an assistant": {[]string{"", "I will wait for a task."}, ""},
	} {
		k := newTalk(1)
		k.add(recall.Assistant, called("call-1", "{}"))
		k.add(recall.Tool, result("call-1", strings.Repeat("A line that gives the summary room.\n", 200)))
		for i, text := range c.said {
			if text != "" {
				k.add([]recall.Role{recall.User, recall.Assistant}[i%2], recall.Part{Type: recall.Text, Text: text})
			}
		}
		got := extracted(t, clip.Evicted{Messages: k.messages, Budget: 4_000, Making: prose.Making{Format: format}}).Text
		_, section, has := strings.Cut(got, "9. Next:\n- [")
		_, line, _ := strings.Cut(section, "] ")
		line, _, _ = strings.Cut(line, "\n")
		if has != (c.want != "") || line != c.want {
			t.Errorf("%s: got %q, want %q, in\n%s", name, line, c.want, got)
		}
	}
}
