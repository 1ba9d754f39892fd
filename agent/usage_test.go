package agent_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/recall"
)

// A report counts the newest prompt that was handed out and the messages since, or, without a prompt, the messages
// since the report before. If it has more than ten times as many tokens as Loci counts in these, and more than two
// windows, it is not believed.
func TestAReportIsComparedWithWhatItCounts(t *testing.T) {
	t.Parallel()
	long := said(recall.User, strings.Repeat("and so it goes on ", 400))
	short := said(recall.User, "And then?")
	for _, c := range []struct {
		name    string
		prompts bool           // a prompt is handed out after before
		before  []recall.Draft // before the prompt, or before an earlier report
		since   []recall.Draft
	}{
		{"a prompt", true, []recall.Draft{long, short, long}, nil},
		{"a prompt and messages since", true, []recall.Draft{short, long}, []recall.Draft{short, long, short}},
		{"messages without a prompt", false, nil, []recall.Draft{long, long}},
		{"messages since another report", false, []recall.Draft{short, long}, []recall.Draft{long, short, long}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, _ := newStore(t)
			a := create(t, s, agent.New{Name: "a", WindowLimit: new(8000)})
			conversation := func() recall.Conversation {
				t.Helper()
				of, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
				if err != nil {
					t.Fatal(err)
				}
				return of
			}
			report := func(tokens int) (stored int) {
				t.Helper()
				of := conversation()
				if err := s.ReportUsage(t.Context(), s.org, of, of.Messages, tokens); err != nil {
					t.Fatal(err)
				}
				return conversation().Reported
			}
			counted := 0
			if len(c.before) > 0 {
				say(t, s, a, c.before...)
			}
			if c.prompts {
				counted = handOut(t, s, a, agent.OpenAI).Tokens.Estimated
			} else if len(c.before) > 0 {
				report(3000)
			}
			before := conversation()
			if len(c.since) > 0 {
				say(t, s, a, c.since...)
			}
			counted += int(conversation().Tokens - before.Tokens)
			if !c.prompts && len(c.before) == 0 {
				counted = int(conversation().Tokens)
			}
			if 10*counted <= 2*8000 {
				t.Fatalf("%d tokens are too few: twice the window would be believed", counted)
			}
			if got := report(10*counted + 1); got != before.Reported {
				t.Errorf("%d tokens, of which Loci counts %d, were believed: %d are stored", 10*counted+1, counted, got)
			}
			if got := report(10 * counted); got != 10*counted {
				t.Errorf("%d tokens, of which Loci counts %d, were not believed: %d are stored", 10*counted, counted, got)
			}
		})
	}
}

// A recorded prompt has the answer before it, and not its own: what is learned does not depend on its own answer.
func TestARecordedPromptDoesNotCountItsAnswer(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("and so it goes on ", 100)
	learned := func(first, last string) (factor float64) {
		t.Helper()
		s, pool := newStore(t)
		a := create(t, s, agent.New{Name: "a", Model: new("acme/large"), WindowLimit: new(32_000)})
		say(t, s, a, said(recall.User, "Hello."), said(recall.Assistant, first), said(recall.User, long),
			said(recall.Assistant, last))
		c, err := s.Recall.Conversation(t.Context(), s.org, a.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		prompts := []recall.RecordedPrompt{{Model: "large", Answer: c.Messages - 2, Tokens: 100},
			{Model: "large", Answer: c.Messages, Tokens: 1100}}
		if err := s.LearnRecorded(t.Context(), s.org, c, prompts); err != nil {
			t.Fatal(err)
		}
		err = pool.QueryRow(t.Context(), `SELECT factor FROM model_factors WHERE org = $1`, s.org).Scan(&factor)
		if err != nil {
			t.Fatal(err)
		}
		return factor
	}
	short := learned("Yes.", "Yes.")
	if got := learned("Yes.", long); got != short {
		t.Errorf("with a long answer the factor is %v, with a short one %v", got, short)
	}
	if got := learned(long, "Yes."); got >= short {
		t.Errorf("with a long answer before it the factor is %v, want less than %v", got, short)
	}
}
