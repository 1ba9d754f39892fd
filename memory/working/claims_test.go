package working_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/memory/working"
)

// filled returns the record of an agent at work.
func (f *fixture) filled() working.Memory {
	f.Helper()
	return f.change(add(working.Task, "Add an endpoint that exports the invoices of a month"),
		add(working.ImportantFiles, "server/invoices.go"), add(working.ImportantFiles, "server/routes.go"),
		add(working.ImportantFiles, "server/invoices_test.go"),
		add(working.Decisions, "Stream rows, because a month may have 200,000"),
		add(working.Decisions, "The export is CSV with a header; amounts are in cents"),
		add(working.OpenQuestions, "May an auditor see drafts?"), add(working.Next, "Write the handler's first test"),
		add(working.Blockers, "The staging database is down"))
}

func TestClaim161AFilledRecordHas200To800Tokens(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	m := f.filled()
	for i := range 4 {
		m = f.change(add(working.Decisions, fmt.Sprintf("Decision %d: errors of the database are retried twice", i)))
	}
	if m.Tokens < 200 || m.Tokens > working.HealthyTokens || working.HealthyTokens != 800 {
		t.Errorf("the record has %d tokens, of %d:\n%s", m.Tokens, working.HealthyTokens, m.Text)
	}
}

func TestClaim162TheFieldsAreThoseOfTheDeck(t *testing.T) {
	t.Parallel()
	want := []working.Field{"task", "important_files", "decisions", "open_questions", "next", "blockers"}
	if got := working.Fields[:6]; !slices.Equal(got, want) || len(working.Fields) != 7 ||
		working.Fields[6] != working.LastEdit { // claim 174
		t.Errorf("got %v, want %v and last_edit", working.Fields, want)
	}
}

func TestClaim163AtMostSevenFilesAreImportant(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var m working.Memory
	for i := range 12 {
		changed, err := f.store.Change(t.Context(), f.org, f.target(0),
			[]working.Change{add(working.ImportantFiles, fmt.Sprintf("server/file%d.go", i))})
		if err == nil {
			m = changed
		}
	}
	if n := len(m.ImportantFiles); n != 7 {
		t.Errorf("%d files are important", n)
	}
}

func TestClaims164And168TaskAndNextAreOneEach(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.filled()
	m := f.change(add(working.Task, "Import invoices"), add(working.Next, "Read the format"))
	if m.Task.Text != "Import invoices" || m.Next.Text != "Read the format" || strings.Contains(m.Text, "first test") {
		t.Errorf("got\n%s", m.Text)
	}
}

func TestClaims167And169AnsweredQuestionsAndBlockersGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.filled()
	m := f.change(
		working.Change{Field: working.OpenQuestions, Action: working.Remove, Text: "May an auditor see drafts?"},
		working.Change{Field: working.Blockers, Action: working.Remove, Text: "The staging database is down"})
	if len(m.OpenQuestions)+len(m.Blockers) > 0 || len(m.Decisions) != 2 {
		t.Errorf("got\n%s", m.Text)
	}
}

func TestClaim170EachEditIsAVersionThatSaysWho(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := f.filled().Version
	if m := f.change(add(working.Next, "Read the format")); m.Version != before+1 {
		t.Errorf("version %d follows %d", m.Version, before)
	}
}

func TestClaim178ARecordAbove1500TokensIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.filled()
	most := 0
	for i := range 100 {
		m, err := f.store.Change(t.Context(), f.org, f.target(0), []working.Change{
			add(working.Decisions, fmt.Sprintf("Decision %d: %s", i, strings.Repeat("as we said before ", 5)))})
		if err != nil {
			if most < 1_400 || most > 1_500 || !strings.Contains(err.Error(), "1500") {
				t.Errorf("with %d tokens: got %v", most, err)
			}
			return
		}
		most = m.Tokens
	}
	t.Errorf("a record of %d tokens is stored", most)
}
