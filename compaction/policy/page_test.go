package policy_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/policy"
)

var updatePage = flag.Bool("update", false, "write the tables of docs/policies.md")

const (
	pagePath  = "../../docs/policies.md"
	pageBegin = "<!-- begin: written by a test from the presets and the mechanisms -->\n"
	pageEnd   = "<!-- end -->\n"
)

// settingsWords returns a step's settings in one cell of a table.
func settingsWords(s policy.Step) string {
	var words []string
	for _, set := range policy.Settings(s) {
		raw, _ := json.Marshal(set.Value)
		words = append(words, fmt.Sprintf("`%s` %s", set.Name, cell(string(raw))))
	}
	return strings.Join(words, ", ")
}

// cell returns a text for a cell of a table.
func cell(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "|", `\|`), "\n", " ")
}

// policiesPage returns what the page says about each preset and each step.
func policiesPage() string {
	var b strings.Builder
	b.WriteString("\n## Policies with a name\n")
	for _, p := range policy.Presets() {
		fmt.Fprintf(&b, "\n### `%s`: %s\n\n%s\n\n%s\n\n| step | stage | settings |\n| --- | --- | --- |\n", p.Name, p.Title,
			p.Description, p.Source)
		for _, s := range p.Policy().Steps {
			m := policy.Describe(s)
			fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s |\n", m.Name, m.Name, m.Stage, settingsWords(s))
		}
	}
	b.WriteString("\n## Steps\n")
	for _, m := range policy.Mechanisms() {
		fmt.Fprintf(&b, "\n### `%s`\n\n%s Stage: %s. From: %s.\n", m.Name, m.Words, m.Stage,
			strings.TrimSuffix(m.Source, "."))
		settings := policy.Settings(m.New())
		if len(settings) == 0 {
			continue
		}
		b.WriteString("\n| setting | default | range | meaning |\n| --- | --- | --- | --- |\n")
		for _, s := range settings {
			raw, _ := json.Marshal(s.Value)
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", s.Name, cell(string(raw)), rangeWords(s), cell(s.Words))
		}
	}
	return b.String() + "\n"
}

// rangeWords returns the values that a setting may have.
func rangeWords(s policy.Setting) string {
	switch {
	case len(s.OneOf) > 0:
		return strings.Join(s.OneOf, ", ")
	case s.Max > s.Min:
		return fmt.Sprintf("%.15g to %.15g", s.Min, s.Max)
	}
	return ""
}

// docs/policies.md describes the current presets and steps.
func TestThePageOfPoliciesIsCurrent(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(raw), pageBegin)
	_, tail, closed := strings.Cut(rest, pageEnd)
	if !ok || !closed {
		t.Fatalf("%s has no place for the tables", pagePath)
	}
	want := head + pageBegin + policiesPage() + pageEnd + tail
	if want == string(raw) {
		return
	}
	if !*updatePage {
		t.Fatalf("%s has other tables: run this test with -update", pagePath)
	}
	if err := os.WriteFile(pagePath, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
}
