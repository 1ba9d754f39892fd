package policy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/compaction/summary"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// session returns a conversation about a parser with everything that formats list: requests, rules, decisions, files,
// errors.
func session() *talk {
	talk := newTalk(200_000, 1_000)
	user := func(s string) { talk.put(recall.User, 0, recall.Part{Type: recall.Text, Text: s}) }
	answer := func(s string) { talk.put(recall.Assistant, 0, recall.Part{Type: recall.Text, Text: s}) }
	run := func(tool, input, result string, failed bool) {
		talk.calls++
		id := fmt.Sprint("call-", talk.calls)
		talk.put(recall.Assistant, 0, recall.Part{Type: recall.ToolCall, CallID: id, Name: tool, Input: input})
		talk.put(recall.Tool, 0, recall.Part{Type: recall.ToolReturn, CallID: id, Text: result, IsError: failed})
	}
	user("Please fix the parser in src/parser.go: it fails on commit 3f9c2d1ab7e0. Never touch src/lexer.go.")
	run("read_file", `{"path":"src/parser.go"}`, "package parser\nfunc Parse() error { return nil }", false)
	run("bash", `{"command":"go test ./..."}`, "FAIL: TestParse: unexpected token at parser.go:88, exit status 1", true)
	answer("The loop stops one token too early. We decided to read ahead by one token, because the grammar is LL(2).")
	run("edit_file", `{"path":"src/parser.go"}`, "edited", false)
	user("Also update docs/grammar.md, and tell me when ticket PROJ-1742 can be closed.")
	run("read_file", `{"path":"docs/grammar.md"}`, "# Grammar\nThe grammar is LL(1).", false)
	answer("I still have to run the tests again before PROJ-1742 can be closed.")
	return talk
}

// evictedAs returns a whole session, to be summarized in a format.
func evictedAs(f *prose.Format, talk *talk) clip.Evicted {
	e := clip.Evicted{Messages: talk.Messages, Budget: 2_000}
	e.Format = f
	return e
}

// Without a model, each format's summary says that no model made it, has the format's headings, and quotes what was
// said.
func TestFormatsAreFilledWithoutAModel(t *testing.T) {
	t.Parallel()
	for name, f := range policy.Formats() {
		s, err := summary.Summarize(t.Context(), evictedAs(f, session()), plan.Defaults(), nil)
		if err != nil || !strings.HasPrefix(s.Text, "(Made without a model") || s.How != clip.Extracted {
			t.Fatalf("%s: %v %v", name, s, err)
		}
		filled := 0
		for _, section := range f.Sections {
			if strings.Contains(s.Text, "\n"+section.Heading+"\n- ") {
				filled++
			}
		}
		if filled < 3 {
			t.Errorf("%s: %d headings are filled:\n%s", name, filled, s.Text)
		}
		if !strings.Contains(s.Text, "PROJ-1742") {
			t.Errorf("%s does not name what the last request named:\n%s", name, s.Text)
		}
		again := evictedAs(f, newTalk(0, 0).say(recall.User, 50))
		again.Previous = &s
		next, err := summary.Summarize(t.Context(), again, plan.Defaults(), nil)
		if err != nil || !strings.Contains(next.Text, "LL(2)") {
			t.Errorf("%s: a decision is gone with the second compaction:\n%s\n%v", name, next.Text, err)
		}
		t.Logf("%s:\n%s\n\n%s", name, s.Text, next.Text)
	}
}

// Open questions stay open in the next summary, and the last state becomes a finding, so that no format lists an old
// state as still to do. A sum is kept although its sentence has hardly any words; a line that was cut is not.
func TestOldStateIsNothingOpen(t *testing.T) {
	t.Parallel()
	for name, f := range policy.Formats() {
		if !slices.ContainsFunc(f.Sections, func(s prose.FormatSection) bool {
			return slices.Contains(s.From, "open") && slices.Contains(s.From, "state")
		}) {
			continue
		}
		f := *f
		f.MaxTokens = 0
		talk := session()
		talk.say(recall.User, 4_000)
		talk.put(recall.Assistant, 0, recall.Part{Type: recall.Text, Text: "All is paid. The sum is 7,431.62 EUR."})
		s, err := summary.Summarize(t.Context(), evictedAs(&f, talk), plan.Defaults(), nil)
		if err != nil || !strings.Contains(s.Text, "assistant: All is paid.") {
			t.Fatalf("%s: %v\n%s", name, err, s.Text)
		}
		s.Text += "\n- [3] result of bash: one that the limit cut... [summary truncated to fit]"
		again := evictedAs(&f, newTalk(0, 0).say(recall.User, 50))
		again.Previous = &s
		next, err := summary.Summarize(t.Context(), again, plan.Defaults(), nil)
		if err != nil || strings.Contains(next.Text, "assistant: All is paid") || !strings.Contains(next.Text, "7,431.62") ||
			strings.Contains(next.Text, "the limit cut") || !strings.Contains(next.Text, "I still have to run the tests") {
			t.Errorf("%s: %v\n%s\n\nbecomes\n%s", name, err, s.Text, next.Text)
		}
	}
}

// Each format names only sections that exist, each once. A section that is not a list of sentences stands alone.
func TestFormatsAreWhole(t *testing.T) {
	t.Parallel()
	alone := []string{"requests", "errors", "named", "calls", "next"}
	known := append([]string{"earlier", "told", "decisions", "findings", "open", "state"}, alone...)
	for name, f := range policy.Formats() {
		var all []string
		for _, s := range f.Sections {
			if s.Heading == "" || s.Words == "" {
				t.Errorf("%s: %+v", name, s)
			}
			for _, from := range s.From {
				if !slices.Contains(known, from) || slices.Contains(all, from) || len(s.From) > 1 && slices.Contains(alone, from) {
					t.Errorf("%s: %s is of %v", name, s.Heading, s.From)
				}
				all = append(all, from)
			}
		}
		s := clip.Summary{Text: "x", Before: f.Before, After: f.After, From: 1, To: 1 << 20, FromSeq: 1 << 22,
			ToSeq: 1 << 23}
		if n := clip.SummaryTokens(s); n > 121 {
			t.Errorf("%s: the words around a summary take %d tokens", name, n)
		}
	}
	for _, m := range policy.Mechanisms() {
		for _, set := range policy.Settings(m.New()) {
			if set.Name == "summary" && len(set.OneOf) != len(policy.Formats())+1 {
				t.Errorf("%s offers the formats %v", m.Name, set.OneOf)
			}
		}
	}
}

// summarized asks a model with given answers. It returns the summary and the requests.
func summarized(t *testing.T, e clip.Evicted, answers ...any) (clip.Summary,
	[]summary.Request) {
	t.Helper()
	model := &asker{answer: func(n int, _ summary.Request) (summary.Reply, error) {
		switch a := answers[min(n, len(answers))-1].(type) {
		case error:
			return summary.Reply{}, a
		default:
			return summary.Reply{Text: fmt.Sprint(a), Finish: "stop"}, nil
		}
	}}
	s, err := summary.Summarize(t.Context(), e, plan.Defaults(),
		&summary.Model{Summarizer: model, Name: "fake", Window: 200_000})
	if err != nil {
		t.Fatal(err)
	}
	return s, model.asked
}

// Claude Code's request has nine parts, in order. The model's analysis is not in the summary.
func TestClaudeCodeAsksForNineParts(t *testing.T) {
	t.Parallel()
	e := evictedAs(policy.Formats()["claude-code"], session())
	good := "<analysis>x marks it</analysis>\n<summary>Fix src/parser.go of commit 3f9c2d1ab7e0, update " +
		"docs/grammar.md, tell when PROJ-1742 can be closed; src/lexer.go stays.</summary>"
	s, requests := summarized(t, e, good)
	from := 0
	for _, part := range []string{"Primary Request", "Key Technical Concepts", "Files and Code", "Errors and fixes",
		"Problem Solving", "All user messages", "Pending Tasks", "Current Work", "Optional Next Step"} {
		i := strings.Index(requests[0].Messages[0].Content[from:], part)
		if i < 0 {
			t.Fatalf("no %s in\n%s", part, requests[0].Messages[0].Content)
		}
		from += i
	}
	if strings.Contains(s.Text, "x marks it") || !strings.HasPrefix(s.Text, "Fix src/parser.go") {
		t.Errorf("the summary is\n%s", s.Text)
	}
	shown := clip.SummaryMessage(s, false, nil)
	if !strings.Contains(shown, "continues from a conversation that ran out of context") {
		t.Error(shown)
	}
	unclosed := strings.Replace(strings.Replace(good, "</analysis>", "", 1), "</summary>", "", 1)
	if s, requests = summarized(t, e, unclosed); len(requests) != 1 || strings.Contains(s.Text, "x marks it") {
		t.Errorf("without closing tags: %d calls,\n%s", len(requests), s.Text)
	}
	untagged := strings.NewReplacer("<summary>", "", "</summary>", "").Replace(good)
	for _, answer := range []string{untagged, strings.Replace(untagged, "<analysis>x marks it</analysis>", "", 1)} {
		s, requests = summarized(t, e, answer)
		if len(requests) != 1 || s.How != clip.Whole || !strings.HasPrefix(s.Text, "Fix src/parser.go") {
			t.Errorf("without a summary tag: %d calls, %s:\n%s", len(requests), s.How, s.Text)
		}
	}
	s, requests = summarized(t, e, "<analysis>x marks it</analysis>", good)
	if len(requests) != 2 || !strings.Contains(requests[1].Messages[1].Content, "no summary between <summary> tags") ||
		s.How != clip.Whole {
		t.Errorf("without a summary: %d calls, %s", len(requests), s.How)
	}
}

// An answer with no more words than were asked for stays whole, even if its names take more tokens than were planned. A
// longer one is cut under each heading alike, so that the last heading stays.
func TestWhatWasAskedForPasses(t *testing.T) {
	t.Parallel()
	f := policy.Formats()["deck"]
	e := evictedAs(f, session())
	e.Budget = 128 // 80 words
	asked := plan.FormatWords(f, plan.SlidingWindow, e.Budget)
	good := "Files touched:\n- src/parser.go, src/lexer.go (never), docs/grammar.md\n" +
		"Decisions:\n- Read ahead by one token, because the grammar is LL(2), since commit 3f9c2d1ab7e0 broke TestParse " +
		"at parser.go:88 with an unexpected token; the loop in internal/parser/lookahead_buffer.go stopped too early.\n" +
		"Blocking issues:\n- The tests did not run again; PROJ-1742 is open until then.\n" +
		"Next planned action:\n- Run go test ./... and update docs/grammar.md, then close PROJ-1742."
	words := len(strings.Fields(good))
	if n := tokens.Estimate(good); words > asked || n <= e.Budget {
		t.Fatalf("the test's answer has %d words and %d tokens", words, n)
	}
	s, requests := summarized(t, e, good)
	if len(requests) != 1 || !strings.HasPrefix(s.Text, good) || s.How != clip.Whole {
		t.Errorf("%d calls, %s:\n%s", len(requests), s.How, s.Text)
	}
	long := strings.Replace(good, "Decisions:", "Decisions:\n- "+strings.Repeat("It was decided to go on. ", 30), 1)
	s, requests = summarized(t, e, long)
	if len(requests) != 2 {
		t.Errorf("a long answer is asked for %d times", len(requests))
	}
	for _, section := range f.Sections {
		if !strings.Contains(s.Text, section.Heading) {
			t.Errorf("%s is cut away:\n%s", section.Heading, s.Text)
		}
	}
}

// All messages of the user are in the summary or behind it, including messages that an earlier compaction summarized.
func TestClaudeCodeKeepsAllUserMessages(t *testing.T) {
	t.Parallel()
	talk, want := newTalk(200_000, 0), []string{}
	for i := range 12 {
		word := fmt.Sprintf("distinctive%02dstring", i)
		want = append(want, word)
		talk.put(recall.User, 0, recall.Part{Type: recall.Text, Text: "Please see to " + word + " soon."})
		talk.say(recall.Assistant, 100)
	}
	e := evictedAs(policy.Formats()["claude-code"], talk)
	answer := "<summary>I saw to " + want[0] + " and to " + want[11] + ".</summary>"
	for range 2 {
		s, _ := summarized(t, e, answer)
		for _, word := range want {
			if !strings.Contains(s.Text, word) {
				t.Errorf("%s is gone from\n%s", word, s.Text)
			}
		}
		e.Previous, e.Messages = &s, newTalk(0, 0).say(recall.Assistant, 60).Messages
		answer = "<summary>I went on.</summary>"
	}
}

// If OpenClaw's summary lacks a heading or an identifier, it is asked for once more, with the reason; the second one is
// kept.
func TestOpenClawChecksHeadingsAndIdentifiers(t *testing.T) {
	t.Parallel()
	e := evictedAs(policy.Formats()["openclaw"], session())
	headings := "## Decisions\nRead ahead.\n## Open TODOs\nTests.\n## Constraints/Rules\nsrc/lexer.go stays.\n" +
		"## Pending user asks\nUpdate docs/grammar.md, tell when PROJ-1742 can be closed.\n"
	whole := headings + "## Exact identifiers\nsrc/parser.go 3f9c2d1ab7e0 LL(1) LL(2) parser.go:88"
	if _, requests := summarized(t, e, whole); len(requests) != 1 {
		t.Errorf("a whole summary takes %d calls", len(requests))
	}
	for what, answer := range map[string]string{
		"3f9c2d1ab7e0":         strings.Replace(whole, "3f9c2d1ab7e0", "", 1),
		"## Exact identifiers": headings + "src/parser.go 3f9c2d1ab7e0 parser.go:88",
	} {
		s, requests := summarized(t, e, answer, answer)
		if len(requests) != 2 || !strings.Contains(requests[1].Messages[len(requests[1].Messages)-1].Content, what) {
			t.Errorf("without %s: %d calls", what, len(requests))
		}
		if !strings.Contains(s.Text, "3f9c2d1ab7e0") || !strings.HasPrefix(s.Text, "## Decisions") {
			t.Errorf("without %s: the summary is\n%s", what, s.Text)
		}
	}
	s, _ := summarized(t, e, errors.New("down"))
	if s.How != clip.Extracted || s.Why == "" {
		t.Errorf("a model that fails: %+v", s)
	}
}

// OpenClaw's summary ends with eight failed calls and the number of others, and quotes the newest turns.
func TestOpenClawAppendsFailuresAndRecentTurns(t *testing.T) {
	t.Parallel()
	talk := session()
	for i := range 9 {
		talk.put(recall.Assistant, 0, recall.Part{Type: recall.ToolCall, CallID: fmt.Sprint("f", i), Name: "bash",
			Input: `{"command":"make"}`})
		talk.put(recall.Tool, 0, recall.Part{Type: recall.ToolReturn, CallID: fmt.Sprint("f", i), IsError: true,
			Text: fmt.Sprintf("exit status %d: %s", i, strings.Repeat("no rule ", 100))})
	}
	e := evictedAs(policy.Formats()["openclaw"], talk)
	e.Budget = 6_000
	s, _ := summarized(t, e, "We read ahead, in src/parser.go, for PROJ-1742 and docs/grammar.md.")
	_, list, _ := strings.Cut(s.Text, "## Tool failures\n")
	list, _, _ = strings.Cut(list, "\n\n")
	lines := strings.Split(list, "\n")
	if len(lines) != 9 || lines[8] != "- …and 2 more" {
		t.Errorf("%d lines:\n%s", len(lines), list)
	}
	for _, line := range lines {
		if len([]rune(line)) > 240+len("- bash: …") {
			t.Errorf("a line has %d characters", len([]rune(line)))
		}
	}
	if !strings.Contains(s.Text, "## Recent turns, word for word\n- [") {
		t.Errorf("no recent turns in\n%s", s.Text)
	}
}

// Pi's lists of files are sorted, list a modified file only once, and grow with each compaction.
func TestPiListsFilesCumulatively(t *testing.T) {
	t.Parallel()
	e := evictedAs(policy.Formats()["pi"], session())
	s, _ := summarized(t, e, "We read ahead, for PROJ-1742 and docs/grammar.md.")
	if !strings.Contains(s.Text, "<read-files>\ndocs/grammar.md\n</read-files>\n\n<modified-files>\nsrc/parser.go\n") {
		t.Error(s.Text)
	}
	e.Previous, e.Messages = &s, newTalk(0, 0).say(recall.User, 30).look(30).Messages
	next, _ := summarized(t, e, "It went on.")
	if !strings.Contains(next.Text, "<read-files>\ndocs/grammar.md\nsrc/file1.go\n</read-files>\n\n<modified-files>\n"+
		"src/parser.go\n</modified-files>") {
		t.Error(next.Text)
	}
}

// A turn that the cut divides has a summary of its own, behind the history's.
func TestPiJoinsTheSummaryOfADividedTurn(t *testing.T) {
	t.Parallel()
	talk := session()
	e := evictedAs(policy.Formats()["pi"], talk)
	e.Split = talk.Messages[8].Position
	s, requests := summarized(t, e, "We fixed src/parser.go.", "We read docs/grammar.md for PROJ-1742.")
	history, turn, ok := strings.Cut(s.Text, "\n\n---\n\n**Turn Context (split turn):**\n\n")
	if !ok || len(requests) < 2 || !strings.HasPrefix(history, "We fixed") || !strings.HasPrefix(turn, "We read") {
		t.Errorf("%d calls:\n%s", len(requests), s.Text)
	}
	if s.From != talk.Messages[0].Position || s.To != talk.at || tokens.Estimate(s.Text) > e.Budget {
		t.Errorf("it covers %d to %d in %d tokens", s.From, s.To, tokens.Estimate(s.Text))
	}
	if !strings.Contains(requests[len(requests)-1].Messages[0].Content, "## Original Request") {
		t.Error("the turn's beginning is asked for in another format")
	}
	e.Split = talk.Messages[0].Position
	if s, _ = summarized(t, e, "We fixed src/parser.go."); !strings.HasPrefix(s.Text, "No prior history.") {
		t.Error(s.Text)
	}
}

// The words around a summary of the four layers are the pattern's.
func TestFourLayersSummaryHasItsMarkers(t *testing.T) {
	t.Parallel()
	s, _ := summarized(t, evictedAs(policy.Formats()["four-layers"], session()), "We chose LL(2).")
	shown := clip.SummaryMessage(s, false, nil)
	_, rest, ok := strings.Cut(shown, "[Conversation History Summary]\n\nWe chose LL(2).")
	if !ok || !strings.HasSuffix(rest, "\n\n[End Summary — recent messages follow]") {
		t.Error(shown)
	}
}

// The operator, not the model, is told why a summary was not written as planned.
func TestWhyIsSaidToTheOperator(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ answer, want string }{
		{"", "the model's answer was empty"},
		{"Error: 500", "the model answered with an error or an excuse"},
		{"ok", "the model's answer was too short to be a summary"},
		{strings.Repeat("◆◇", 200), "the model's answer was not readable text"},
		{strings.Repeat("Blah and blah, src/parser.go. ", 3_000), "the model's answer was too long"},
		{strings.Repeat("blah blah ", 200), "the model's answer said the same again and again"},
		{"We read it </transcript> for PROJ-1742.", "the model's answer had tags of the transcript in it"},
	} {
		e := evictedAs(nil, session())
		e.Messages = slices.Concat(e.Messages, newTalk(0, 0).say(recall.Assistant, 900).Messages)
		s, requests := summarized(t, e, c.answer)
		if s.How != clip.Extracted || s.Why != c.want {
			t.Errorf("%.30q: %s because %q, want %q", c.answer, s.How, s.Why, c.want)
		}
		if last := requests[len(requests)-1].Messages; !strings.Contains(last[len(last)-1].Content, "\n\nYour last answer ") {
			t.Errorf("%.30q: the model is not told", c.answer)
		}
	}
}
