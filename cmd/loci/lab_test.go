package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
)

// labReplay runs loci lab replay, and returns its output.
func labReplay(t *testing.T, want int, args ...string) string {
	t.Helper()
	var out, errs strings.Builder
	if code := run(t.Context(), append([]string{"lab", "replay"}, args...), &out, &errs); code != want {
		t.Fatalf("loci lab replay %v: %d %s", args, code, errs.String())
	}
	return out.String()
}

// The lab prints a line for each policy and window, and writes a report for programs and people.
func TestLabReplaysTranscripts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var session strings.Builder
	for range 40 {
		session.WriteString(`{"role":"user","content":"Where is max_wal_size set?"}` + "\n" +
			`{"role":"assistant","content":"In postgresql.conf: max_wal_size is 1GB. ` +
			strings.Repeat("It is said at length. ", 60) + `"}` + "\n")
	}
	file := filepath.Join(dir, "session.jsonl")
	if err := os.WriteFile(file, []byte(session.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "report")
	printed := labReplay(t, 0, file, "--policy", "letta,pi,letta", "--window", "8k,1M,8000", "--out", out)
	table, rest, _ := strings.Cut(printed, "\n\n")
	lines := strings.Split(table, "\n")
	if len(lines) != 5 || !strings.Contains(lines[1], "session.jsonl") ||
		!strings.Contains(rest, "session.jsonl, window 8000: To pay least") ||
		!strings.Contains(rest, "any of the 2 policies, because they are equal here: their steps did not fire") ||
		!strings.Contains(rest, "never fired: read_bounds, command_tail, reserve, keep_recent\n") ||
		!strings.Contains(rest, "in view: An answer used it, and its prompt showed it.") {
		t.Errorf("printed %q", printed)
	}
	raw, err := os.ReadFile(filepath.Join(out, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var report lab.Report
	err = json.Unmarshal(raw, &report)
	if results := report.Results; err != nil || len(results) != 4 || results[0].Compactions == 0 ||
		results[2].Compactions != 0 || results[0].Window != 8000 {
		t.Errorf("%v: %d results, %+v", err, len(report.Results), report.Results)
	}
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	if err != nil || strings.Count(string(page), "<polyline") != 4 || strings.Contains(string(page), "http") {
		t.Errorf("%v: %.300s", err, page)
	}
	absent := filepath.Join(dir, "absent")
	labReplay(t, 1, absent)
	for _, args := range [][]string{{"--policy", "nobody"}, {"--window", "none"}, {"--window", "999"}, {"--ratio", "2"},
		{"--ratio", "x"}, {"--read-share", "NaN", "--out", filepath.Join(dir, "none")}, {"--input-price=-1"},
		{"--write-share", "11"}, {"--asks", "101"}, {"--asks=-1"}} {
		labReplay(t, 2, append(args, absent)...) // the file is not read
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a report is written of prices that are none")
	}
}

// A prompt that does not fit the window cannot be sent. The lab counts such prompts, and shows the count beside the
// costs.
func TestLabCountsPromptsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "session.jsonl")
	var session strings.Builder
	for range 3 {
		session.WriteString(`{"role":"user","content":"` + strings.Repeat("Where is it set? ", 400) + `"}` + "\n" +
			`{"role":"assistant","content":"Here."}` + "\n")
	}
	if err := os.WriteFile(file, []byte(session.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	printed := labReplay(t, 0, file, "--window", "1k,1M", "--policy", "letta", "--out", dir)
	table, _, _ := strings.Cut(printed, "\n\n")
	lines := strings.Split(table, "\n")
	column := strings.Index(lines[0], "TOO LARGE")
	if len(lines) != 3 || column < 0 || !strings.HasPrefix(lines[1][column:], "3 ") ||
		!strings.HasPrefix(lines[2][column:], "0 ") {
		t.Errorf("printed\n%s", printed)
	}
	page, err := os.ReadFile(filepath.Join(dir, "report.html"))
	if err != nil || !strings.Contains(string(page), "too<br>large") {
		t.Errorf("the page does not count them: %v", err)
	}
}

// With a model, the lab counts the model's calls and tokens. If the model fails, rules write the summary, and the lab
// counts this.
func TestLabAsksAModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "session.jsonl")
	line := `{"role":"user","content":"Where is max_wal_size set?"}` + "\n" +
		`{"role":"assistant","content":"In postgresql.conf. ` + strings.Repeat("It is said at length. ", 60) + `"}` + "\n"
	if err := os.WriteFile(file, []byte(strings.Repeat(line, 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	replayed := func(provider *llmtest.Provider) lab.Result {
		t.Helper()
		out := filepath.Join(t.TempDir(), "report")
		labReplay(t, 0, file, "--policy", "letta", "--window", "8k", "--out", out, "--model", "some/model",
			"--llm-base-url", provider.BaseURL(), "--asks=0")
		raw, err := os.ReadFile(filepath.Join(out, "report.json"))
		var report lab.Report
		if err := errors.Join(err, json.Unmarshal(raw, &report)); err != nil || len(report.Results) != 1 {
			t.Fatal(err, report)
		}
		return report.Results[0]
	}
	works := llmtest.New(t)
	if r := replayed(works); r.Compactions == 0 || r.ModelCalls != len(works.Requests()) || r.ModelCalls == 0 ||
		r.ModelTokens == 0 || r.ModelFailures != 0 {
		t.Errorf("%d requests: %+v", len(works.Requests()), r)
	}
	fails := llmtest.New(t)
	fails.Always(llmtest.Refuses())
	if r := replayed(fails); r.Compactions == 0 || r.ModelFailures != r.Compactions || r.PairErrors != 0 {
		t.Errorf("%+v", r)
	}
	labReplay(t, 2, file, "--model", "some/model")
	labReplay(t, 2, file, "--ratio", "2")
}

// The report, and the text beside the table, say which parts of a recording were not replayed, and what a changed
// policy was.
func TestALabSaysWhatItReplayed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "q.json")
	if err := os.WriteFile(file, []byte(`{"messages":[
		{"role":"user","id":"m1","content":"Where is it?","timestamp":"9999-99-99"},
		{"role":"assistant","id":"m2","content":"In the <b>cellar</b>."}],
		"questions":[{"question":"Where?","answer":"cellar","evidence":["m2","nope"]}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "report")
	const changed = `{"preset":"pi","steps":{"keep_recent":{"keep_recent_tokens":8000}}}`
	var printed, said strings.Builder
	args := []string{"lab", "replay", file, "--policy", "letta, pi", "--policy", changed, "--out", out}
	if code := run(t.Context(), args, &printed, &said); code != 0 {
		t.Fatal(code, said.String())
	}
	table, _, _ := strings.Cut(printed.String(), "\n\n")
	if got := strings.Count(table, "\n"); got != 3 || !strings.Contains(table, "pi c") {
		t.Errorf("printed %s", printed.String())
	}
	const left = "1 ids of evidence that no message has, 1 times that cannot be read"
	if !strings.Contains(said.String(), left) {
		t.Errorf("said %q, want %q", said.String(), left)
	}
	raw, err := os.ReadFile(filepath.Join(out, "report.json"))
	var report lab.Report
	if err = errors.Join(err, json.Unmarshal(raw, &report)); err != nil {
		t.Fatal(err)
	}
	var asked bytes.Buffer
	if len(report.Policies) == 3 {
		err = json.Compact(&asked, report.Policies[2].Asked)
	}
	if err != nil || asked.String() != changed || report.Policies[2].Name != "pi c" {
		t.Errorf("the policies: %+v, %v", report.Policies, err)
	}
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	if err != nil || !strings.Contains(string(page), left) || !strings.Contains(string(page), "keep_recent_tokens") {
		t.Errorf("%v: the page lacks what was left out or changed: %.2000s", err, page)
	}
	for _, args := range [][]string{{file, "--window="}, {file, "--policy="}, {file, "--policy", `{"preset":"nobody"}`}} {
		labReplay(t, 2, args...)
	}
}

// With a model, the agent's questions are asked again with all of their context, half of it, and a fifth. The report
// says which answers are the same, what they cost, and how they agree with the recording.
func TestLabAsksTheAgentsQuestionsAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "session.jsonl")
	var session strings.Builder
	turn := func(question, answer string) {
		fmt.Fprintf(&session, `{"role":"user","content":%q}`+"\n"+`{"role":"assistant","content":%q}`+"\n", question, answer)
	}
	turn("Which port has the tide gauge?", "It listens on port 48123.")
	for i := range 60 {
		turn(fmt.Sprintf("What is in part %d?", i), strings.Repeat("It is said at length, and nothing comes of it. ", 30))
	}
	turn("Which buoy is adrift?", "Buoy buoy_17 is adrift.")
	turn("Which port did the gauge have?", "Port 48123, as I said.")
	if err := os.WriteFile(file, []byte(session.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	provider := llmtest.New(t)
	provider.Answer = func(asked llmtest.Asked) string { // answers from what it is shown
		text := asked.Text()
		switch {
		case !strings.Contains(text, "Answer the user's last message"):
			return "The user asked about parts, and the agent told of them at length, one after the other, as they came."
		case strings.HasSuffix(strings.TrimSpace(text), "Which buoy is adrift?"):
			return "It is buoy_17."
		case strings.Contains(text, "48123"):
			return "Port 48123."
		}
		return "The conversation does not say."
	}
	out := filepath.Join(dir, "report")
	var printed, errs strings.Builder
	if code := run(t.Context(), []string{"lab", "replay", file, "--policy", "letta", "--window", "1M", "--out", out,
		"--model", "some/model", "--llm-base-url", provider.BaseURL(), "--asks", "2"}, &printed, &errs); code != 0 {
		t.Fatal(code, errs.String())
	}
	const cost = "session.jsonl: asking some/model 2 questions again, with 1.00, 0.50 and 0.20 of their context: about"
	if !strings.Contains(errs.String(), cost) || !strings.Contains(errs.String(), "tokens in 10 calls or more") {
		t.Errorf("said %q, want %q and 10 calls or more", errs.String(), cost)
	}
	raw, err := os.ReadFile(filepath.Join(out, "report.json"))
	var report lab.Report
	if err := errors.Join(err, json.Unmarshal(raw, &report)); err != nil || len(report.Answers) != 6 {
		t.Fatal(err, len(report.Answers))
	}
	calls := 0
	for i, a := range report.Answers {
		calls += a.Calls
		isPort, whole := i >= 3, a.Ratio == 1
		if want := whole || !isPort; a.Same != want || a.Failed != "" || (a.Summary == "") != whole || a.Read == 0 ||
			a.Tokens > int(a.Ratio*1.05*float64(report.Answers[i/3*3].Tokens)) {
			t.Errorf("answer %d: %+v, want the same: %t", i, a, want)
		}
	}
	if calls != len(provider.Requests()) {
		t.Errorf("%d calls are counted, and %d were made", calls, len(provider.Requests()))
	}
	for _, want := range []string{"0.50 of the context", "1 of 2 answers are the same; agreement 0.50",
		fmt.Sprintf("The model was asked %d times", calls)} {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("printed no %q: %s", want, printed.String())
		}
	}
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	if err != nil || !strings.Contains(string(page), "Which buoy is adrift?") ||
		!strings.Contains(string(page), "another, 0.00") {
		t.Errorf("the page has no answers: %v", err)
	}
	failing := llmtest.New(t)
	failing.Always(llmtest.Refuses())
	text := labReplay(t, 0, file, "--policy", "letta", "--window", "1M", "--model", "some/model", "--llm-base-url",
		failing.BaseURL(), "--asks", "1")
	if !strings.Contains(text, "at 1.00: no answer: ") || !strings.Contains(text, "0 of 0 answers are the same") {
		t.Errorf("of a model that fails: %s", text)
	}
}

// An interrupted lab prints and writes what it has measured, marked as partial, and exits as shells do.
func TestAnInterruptedLabShowsWhatItHas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "session.jsonl")
	line := `{"role":"user","content":"Where is max_wal_size set?"}` + "\n" +
		`{"role":"assistant","content":"In postgresql.conf. ` + strings.Repeat("It is said at length. ", 60) + `"}` + "\n"
	if err := os.WriteFile(file, []byte(strings.Repeat(line, 60)), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancelCause(t.Context())
	provider := llmtest.New(t)
	provider.Next(nil, nil, func(_ http.ResponseWriter, r *http.Request, _ llmtest.Asked) bool {
		end(interruption{syscall.SIGINT}) // in the replay under the second policy
		<-r.Context().Done()
		return true
	})
	provider.Answer = func(llmtest.Asked) string { return strings.Repeat("The user asked where it is set. ", 8) }
	out := filepath.Join(dir, "report")
	var printed, errs strings.Builder
	code := run(ctx, []string{"lab", "replay", file, "--policy", "letta,pi", "--window", "16k", "--out", out, "--asks=0",
		"--model", "some/model", "--llm-base-url", provider.BaseURL()}, &printed, &errs)
	if want := "loci: interrupted (interrupt): what was replayed until then is printed"; code != 130 ||
		!strings.Contains(errs.String(), want) {
		t.Errorf("ended with %d: %q", code, errs.String())
	}
	raw, err := os.ReadFile(filepath.Join(out, "report.json"))
	var report lab.Report
	if err := errors.Join(err, json.Unmarshal(raw, &report)); err != nil || !report.Partial || len(report.Results) == 0 ||
		!report.Results[len(report.Results)-1].Partial || len(report.Sessions) != 1 {
		t.Errorf("the report: %v, %+v", err, report)
	}
	if !strings.HasPrefix(printed.String(), "PARTIAL: the replays were interrupted.") ||
		!strings.Contains(printed.String(), "(partial)") || strings.Contains(printed.String(), "Take ") {
		t.Errorf("printed %s", printed.String())
	}
}
