package lab_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
)

// transcriptOf returns a transcript of chat messages, one per line.
func transcriptOf(t *testing.T, lines ...string) transcript.Transcript {
	t.Helper()
	all, err := transcript.Read("chat", strings.NewReader(strings.Join(lines, "\n")))
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	return all[0]
}

// calls returns an answer that calls a tool.
func calls(said, id, tool, arguments string) string {
	return fmt.Sprintf(`{"role":"assistant","content":%q,"tool_calls":[{"id":%q,"type":"function",
		"function":{"name":%q,"arguments":%q}}]}`, said, id, tool, arguments)
}

// The entities that an answer uses are counted by kind, and by the kinds of messages that said them.
func TestEvidenceIsToldApartByKindAndSource(t *testing.T) {
	t.Parallel()
	session := transcriptOf(t,
		`{"role":"user","content":"Please mend order_total in src/billing/cart.go, ticket 2024-11-07."}`,
		calls("", "c1", "read_file", `{"path":"src/billing/cart.go"}`),
		`{"role":"tool","tool_call_id":"c1","content":"12\tfunc applyDiscount(total int) int { return total }\n13\t// end"}`,
		calls("We decided to keep the rounding in round_half_even.", "c2", "bash", `{"command":"go test ./..."}`),
		`{"role":"tool","tool_call_id":"c2",
			"content":"ok  \tshop/cart_helpers.go\ncart_test.go:41: FAIL got 7003, want 7000"}`,
		`{"role":"assistant","content":"func applyDiscount(total int) int { return total }\nloses order_total: `+
			`cart_test.go:41: FAIL got 7003, want 7000, so round_half_even and shop/cart_helpers.go for 2024-11-07."}`)
	p, err := policy.Preset("letta")
	if err != nil {
		t.Fatal(err)
	}
	r, err := lab.Replay(t.Context(), session, lab.Settings{Name: "letta", Policy: p, Window: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []lab.Kind{lab.Path, lab.Number, lab.Name, lab.Quote, lab.ErrorText} {
		if of := r.Kinds[kind]; of.InView == 0 || of.Share() != 1 {
			t.Errorf("%s: %+v", kind, of)
		}
	}
	for _, source := range lab.Sources {
		if of := r.Sources[source]; of.InView == 0 || of.Share() != 1 {
			t.Errorf("of %s: %+v", source, of)
		}
	}
	if of := r.Sources[lab.Decisions]; of.InView != 1 {
		t.Errorf("one identifier is of a decision: %+v", of)
	}
}

// Each row about something that was not in view shows the text around it, and the report contains the messages that
// rows name.
func TestWhatIsMissingLinksToItsText(t *testing.T) {
	t.Parallel()
	session := lab.NewSession(work(30))
	p, err := policy.Parse([]byte(`{"steps":[{"step":"clear_tool_uses","trigger_tokens":1000,"keep":1}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r, err := lab.ReplayOf(t.Context(), session, lab.Settings{Name: "clear", Policy: p, Window: 1_000_000})
	if err != nil || len(r.Missing) == 0 {
		t.Fatal(r, err)
	}
	report := lab.Report{Sessions: []lab.Reported{session.Quote([]lab.Result{r})}, Results: []lab.Result{r}}
	var page strings.Builder
	if err := report.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	texts := map[int]string{}
	for _, text := range report.Sessions[0].Texts {
		texts[text.Position] = text.Text
	}
	for _, m := range r.Missing {
		if !strings.Contains(m.Excerpt, m.Entity) || !strings.Contains(texts[m.First], m.Entity) || texts[m.Position] == "" {
			t.Errorf("%+v: %q", m, texts[m.First])
		}
		for _, anchor := range []string{`href="#s1-`, `id="s1-`} {
			if !strings.Contains(page.String(), anchor) {
				t.Errorf("the page has no %s", anchor)
			}
		}
	}
}
