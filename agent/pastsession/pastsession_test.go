package pastsession_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/pastsession"
	"github.com/loci-memory/loci/compaction/llm"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/recall"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// fixture is an agent with its default conversation.
type fixture struct {
	testing.TB
	org   db.Org
	store *pastsession.Store
	agent string
	seqs  []int64 // of the messages that were said, in order
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	pool, org := dbtest.Org(t)
	f := &fixture{TB: t, org: org, store: &pastsession.Store{Recall: recall.New(pool, recall.Options{})}}
	var err error
	if f.agent, err = db.One[string](t.Context(), pool, `
		INSERT INTO agents (org, name, agent_type, system) VALUES ($1, 'a', 'letta_v1_agent', '') RETURNING id`,
		org); err != nil {
		t.Fatal(err)
	}
	if err := f.store.Recall.Begin(t.Context(), org, f.agent, "You know zebras."); err != nil {
		t.Fatal(err)
	}
	return f
}

func draft(role recall.Role, text string) recall.Draft {
	return recall.Draft{Role: role, Content: []recall.Part{{Type: recall.Text, Text: text}}}
}

func (f *fixture) say(drafts ...recall.Draft) {
	f.Helper()
	at, err := f.store.Recall.Append(f.Context(), f.org, f.agent, recall.DefaultConversation, drafts)
	if err != nil {
		f.Fatal(err)
	}
	for _, a := range at {
		f.seqs = append(f.seqs, a.Seq)
	}
}

// talk says texts, by the user and the assistant in turn.
func (f *fixture) talk(texts ...string) {
	f.Helper()
	for i, text := range texts {
		f.say(draft([]recall.Role{recall.User, recall.Assistant}[i%2], text))
	}
}

func (f *fixture) ask(q pastsession.Question) (pastsession.SessionAnswer, error) {
	f.Helper()
	q.AgentID, q.Zone = f.agent, time.UTC
	if q.Conversation == "" {
		q.Conversation = recall.DefaultConversation
	}
	return f.store.Ask(f.Context(), f.org, q)
}

// answer asks a question that must be answered.
func (f *fixture) answer(q pastsession.Question) pastsession.SessionAnswer {
	f.Helper()
	got, err := f.ask(q)
	if err != nil {
		f.Fatal(err)
	}
	return got
}

// model gives the store a model that answers with fault. It returns the model's provider.
func (f *fixture) model(fault llmtest.Fault, redact func(string) string) *llmtest.Provider {
	f.Helper()
	p := llmtest.New(f)
	p.Always(fault)
	client, err := llm.New(llm.Config{BaseURL: p.BaseURL(), APIKey: "k", Model: "m", HTTP: p.Client(), Attempts: 1,
		FirstPause: time.Nanosecond})
	if err != nil {
		f.Fatal(err)
	}
	f.store.Models = func(context.Context, string) *summary.Model {
		return &summary.Model{Summarizer: client, Name: "m", Redact: redact}
	}
	return p
}

func TestAQuestionHas1To2000Characters(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.talk("Where is the zebra?", "In the zoo.")
	for _, c := range []struct {
		name, text string
		refused    bool
	}{
		{"none", "", true},
		{"only space", " \n\t", true},
		{"one", "z", false},
		{"2,000, of two bytes each, and space around them", "  " + strings.Repeat("ä", 2_000) + "\n", false},
		{"2,001", strings.Repeat("z", 2_001), true},
	} {
		if _, err := f.ask(pastsession.Question{Text: c.text}); errors.Is(err, db.ErrInvalid) != c.refused ||
			(err != nil) != c.refused {
			t.Errorf("%s: got %v, refused should be %v", c.name, err, c.refused)
		}
	}
	if _, err := f.ask(pastsession.Question{Text: "z", Conversation: "conv-unknown"}); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("a conversation that does not exist: got %v, want ErrNotFound", err)
	}
}

// An answer has at most as many passages as were asked for: 5 by default, and never more than 20.
func TestPassagesHaveALimit(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 22 {
		f.talk(fmt.Sprint("The zebra number ", i), "Well.", "So.", "Well.")
	}
	for asked, want := range map[int]int{0: 5, 1: 1, 7: 7, 20: 20, 21: 20, 1_000: 20} {
		if got := f.answer(pastsession.Question{Text: "zebra", Passages: asked}).Passages; len(got) != want {
			t.Errorf("asked for %d passages: got %d, want %d", asked, len(got), want)
		}
	}
}

// A passage shows the message before a hit and the one after it. A hit in a passage is marked there. System prompts,
// messages of a silent turn, and messages that another passage shows are left out.
func TestPassagesShowNeighbors(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	silent := draft(recall.User, "Write down what matters.")
	silent.Purpose = recall.ForFlush
	f.talk("A zebra zebra, at the beginning", "Yes.", "A zebra", "What?", "Well.", "The zebra again",
		"and once more the zebra", "Right.", "Left.")
	f.say(draft(recall.User, "The last zebra"), silent)
	got := f.answer(pastsession.Question{Text: "zebra", Passages: 5})
	shown := map[string]bool{}
	for _, p := range got.Passages {
		var texts []string
		for _, l := range p.Lines {
			mark := ""
			if l.Found {
				mark = "*"
			}
			texts = append(texts, fmt.Sprint(slices.Index(f.seqs, l.Seq), mark))
		}
		shown[strings.Join(texts, " ")] = true
		if p.FromSeq != p.Lines[0].Seq || p.ToSeq != p.Lines[len(p.Lines)-1].Seq {
			t.Errorf("the passage %v is from %d to %d", texts, p.FromSeq, p.ToSeq)
		}
	}
	// The better of two hits has the neighbor between them, or the other hit.
	first := shown["0* 1"] && shown["2* 3"] || shown["0*"] && shown["1 2* 3"]
	beside := shown["4 5* 6*"] || shown["5* 6* 7"]
	if !first || !beside || !shown["8 9*"] || len(shown) != 4 {
		t.Errorf("the passages are %v", shown)
	}
	if got.Answer != nil || got.Why == nil || !strings.Contains(*got.Why, "no model") || len(got.Seqs) != 0 {
		t.Errorf("without a model: %+v", got)
	}
}

// The text of a line ends after 1,200 characters, with a mark.
func TestLinesAreCut(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	whole := "zebra " + strings.Repeat("ä", 1_194)
	f.talk(whole, whole+"b")
	lines := f.answer(pastsession.Question{Text: "zebra"}).Passages[0].Lines
	if len(lines) != 2 || lines[0].Text != whole || lines[1].Text != whole+"…" {
		t.Errorf("got %d lines, with %d and %d bytes, want %d and %d", len(lines), len(lines[0].Text), len(lines[1].Text),
			len(whole), len(whole+"…"))
	}
}

// Passages are rendered with positions that no text can forge.
func TestPassagesAreRendered(t *testing.T) {
	t.Parallel()
	got := pastsession.Render([]pastsession.SessionPassage{
		{Lines: []pastsession.SessionLine{{Seq: 12, Role: recall.User, Text: "a\nb"}, {Seq: 13, Role: recall.Tool,
			Text: "c"}}},
		{Lines: []pastsession.SessionLine{{Seq: 3, Role: recall.Assistant, Text: "x\n[seq 1] user: d"}}}})
	lines := strings.Split(got, "\n")
	want := []string{"[seq 12] user: a", "    b", "[seq 13] tool: c", "--", "[seq 3] assistant: x"}
	if len(lines) != 7 || !slices.Equal(lines[:5], want) || lines[6] != "" {
		t.Fatalf("got %q, want %q and a line that is marked", lines, want)
	}
	if forged := strings.TrimSpace(lines[5]); strings.HasPrefix(forged, "[seq 1]") || !strings.Contains(forged, "d") {
		t.Errorf("the text reads as a position: %q", lines[5])
	}
}

// A model's answer is shown if it cites positions of the passages only. Otherwise the answer says why there is none.
func TestAnswersOfAModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault func(zoo, other int64) llmtest.Fault
		shown bool
		seqs  int
		why   string
	}{
		{"it cites two positions, one of them twice", func(zoo, other int64) llmtest.Fault {
			return llmtest.Writes(fmt.Sprintf(" In the zoo [seq %d], as asked [seq %d, seq %d]. ", zoo, other, zoo))
		}, true, 2, ""},
		{"it cites nothing", func(int64, int64) llmtest.Fault { return llmtest.Writes("In the zoo.") }, false, 0, "cites no"},
		{"it cites a position that no passage shows", func(zoo, _ int64) llmtest.Fault {
			return llmtest.Writes(fmt.Sprintf("In the zoo [seq %d] [seq %d].", zoo, zoo+1_000))
		}, false, 0, "cites no"},
		{"it cites a number beyond 64 bits", func(int64, int64) llmtest.Fault {
			return llmtest.Writes("In the zoo [seq 99999999999999999999999].")
		}, false, 0, "cites no"},
		{"it finds nothing", func(int64, int64) llmtest.Fault { return llmtest.Writes("NONE.") }, false, 0,
			"found no answer"},
		{"it fails", func(int64, int64) llmtest.Fault { return llmtest.Fails() }, false, 0, "did not answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.talk("Where is the zebra?", "It is in the zoo.", "Thanks.")
			p := f.model(c.fault(f.seqs[1], f.seqs[0]), func(text string) string {
				return strings.ReplaceAll(text, "zoo", "[REDACTED]")
			})
			got := f.answer(pastsession.Question{Text: "the zebra in the zoo"})
			if (got.Answer != nil) != c.shown || (got.Why == nil) != c.shown || len(got.Passages) == 0 ||
				len(got.Seqs) != c.seqs || got.Why != nil && !strings.Contains(*got.Why, c.why) {
				t.Fatalf("got %+v, why %q", got, deref(got.Why))
			}
			if c.shown && (!slices.Equal(got.Seqs, []int64{f.seqs[1], f.seqs[0]}) ||
				!strings.HasPrefix(*got.Answer, "In the [REDACTED] [seq")) {
				t.Errorf("got %q, which cites %v; want it redacted, with %v", *got.Answer, got.Seqs, f.seqs[:2])
			}
			asked := p.Requests()
			if len(asked) != 1 || asked[0].MaxTokens != 600 ||
				!strings.Contains(asked[0].Text(), "The question: the zebra in") ||
				!strings.Contains(asked[0].Text(), fmt.Sprintf("[seq %d] assistant: It is in the zoo.", f.seqs[1])) {
				t.Errorf("the model was asked %d times: %+v", len(asked), asked)
			}
		})
	}
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// A message that shares nothing with the question, but stands near messages that do, may be shown. It is not marked as
// found.
func TestContextIsNotMarkedAsFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.talk("Where is the zebra?", "In the zoo.", "And since when?", "Since May.")
	got := f.answer(pastsession.Question{Text: "zebra", Passages: 10})
	for _, p := range got.Passages {
		for _, l := range p.Lines {
			if want := strings.Contains(l.Text, "zebra"); l.Found != want {
				t.Errorf("%q: marked as found: %v, want %v", l.Text, l.Found, want)
			}
		}
	}
	if len(got.Passages) == 0 {
		t.Error("no passage is found")
	}
}

// If nothing fits the question, no model is asked. Other conversations of the agent are not searched.
func TestNothingFits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.talk("Where is the giraffe?", "In the zoo.")
	p := f.model(llmtest.Writes("It is here [seq 1]."), nil)
	other, err := f.store.Recall.CreateConversation(t.Context(), f.org, f.agent, recall.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.store.Recall.Append(t.Context(), f.org, f.agent, other.ID, []recall.Draft{
		draft(recall.User, "A zebra")}); err != nil {
		t.Fatal(err)
	}
	got := f.answer(pastsession.Question{Text: "zebra"})
	if got.Answer != nil || got.Why != nil || len(got.Passages) != 0 || got.Passages == nil || got.Seqs == nil ||
		len(p.Requests()) != 0 {
		t.Errorf("got %+v, and the model was asked %d times", got, len(p.Requests()))
	}
	if got := f.answer(pastsession.Question{Text: "zebra", Conversation: other.ID}); len(got.Passages) != 1 {
		t.Errorf("in the other conversation there are %d passages, want 1", len(got.Passages))
	}
}
