package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loci-memory/loci/compaction/lab/transcript"
)

// Recorded sessions are imported into an agent, with their times and in order. Lines that are no session are reported.
// A second run adds nothing. If a recording has grown, another run adds only the new messages.
func TestImportOfSessions(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	dir := t.TempDir()
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	chat := `{"role":"system","content":"You mend."}
{"role":"user","content":"Read a.txt","timestamp":"2026-03-09T09:00:00Z"}
{"role":"assistant","content":null,"tool_calls":[{"id":"c1","function":{"name":"read","arguments":"{}"}}],
"timestamp":"2026-03-09T09:00:05Z"}
{"role":"tool","tool_call_id":"c1","content":"It says 7003.","timestamp":"2026-03-09T09:00:06Z"}
`
	write("chat.jsonl", chat)
	write("broken.jsonl", "{\"role\":\"user\",\"content\":\"x\"}\n{\"role\":")
	ended := `{"role":"user","content":"y"}` + "\n" + `{"role":"assistant","content":"z"}` + "\n"
	write("ended.jsonl", ended+`{"role":"us`)
	agent := call[identified](p, "POST", "/v1/agents", map[string]any{"name": "a"}).ID
	importSessions := func(want int) string {
		t.Helper()
		out, errs := newLines(), newLines()
		if code := run(t.Context(), p.asking("import", "sessions", "--agent="+agent, dir), out,
			errs); code != want {
			t.Fatalf("got %d:\n%s\n%s", code, out, errs)
		}
		return out.String() + errs.String()
	}
	if printed := importSessions(1); !strings.Contains(printed,
		"2 files, 2 sessions: 5 messages added, 0 already there") ||
		!strings.Contains(printed, "skipped: ended.jsonl, line 3: the JSON ends too early") ||
		!strings.Contains(printed, "broken.jsonl, line 2: the JSON ends too early") ||
		!strings.Contains(printed, "left out: 1 system prompts") {
		t.Errorf("the first run said %s", printed)
	}
	write("broken.jsonl", "{\"role\":\"user\",\"content\":\"x\"}\n")
	write("ended.jsonl", ended+`{"role":"user","content":"Thanks."}`)
	write("chat.jsonl", chat+`{"role":"assistant","content":"7003","timestamp":"2026-03-09T09:00:09Z"}`+"\n")
	if printed := importSessions(0); !strings.Contains(printed, "3 files, 3 sessions: 3 messages added, 5 already there") {
		t.Errorf("the second run said %s", printed)
	}
	if printed := importSessions(0); !strings.Contains(printed, "0 messages added, 8 already there") {
		t.Errorf("the third run said %s", printed)
	}
	type conversation struct{ ID, Summary string }
	list := call[[]conversation](p, "GET", "/v1/conversations/?agent_id="+agent, nil)
	index := -1
	for i, c := range list {
		if strings.HasPrefix(c.Summary, "chat.jsonl (session-") {
			index = i
		}
	}
	if index < 0 || len(list) != 3 {
		t.Fatalf("the conversations are %+v", list)
	}
	raw, err := json.Marshal(call[any](p, "GET", "/v1/conversations/"+list[index].ID+"/messages?order=asc", nil))
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, want := range []string{"Read a.txt", "2026-03-09T09:00:05", "It says 7003.", `"7003"`} {
		i := strings.Index(text, want)
		if i < 0 {
			t.Fatalf("%q does not come in its place: %s", want, raw)
		}
		text = text[i:]
	}
}

// A session with an id is the same session in a file with another name. If a message with an id differs from the
// imported one, it is named and left out; new messages are imported. Messages of an abandoned branch stay, and new ones
// follow them.
func TestImportOfSessionsThatChanged(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	dir := t.TempDir()
	agent := call[identified](p, "POST", "/v1/agents", map[string]any{"name": "a"}).ID
	entry := func(id, parent, role, text string) string {
		return fmt.Sprintf(`{"type":%q,"uuid":%q,"parentUuid":%q,"sessionId":"0b0e8a54-0000-4000-8000-000000000001",`+
			`"message":{"role":%[1]q,"content":%[4]q}}`+"\n", role, id, parent, text)
	}
	begin := entry("1", "", "user", "one") + entry("2", "1", "assistant", "two")
	for _, step := range []struct{ name, file, text, want string }{
		{"first", "a.jsonl", begin + entry("3", "2", "user", "three"), "3 messages added, 0 already there"},
		{"under another name, grown", "b.jsonl",
			begin + entry("3", "2", "user", "three") + entry("4", "3", "assistant", "four"),
			"1 messages added, 3 already there"},
		{"rewound", "b.jsonl", begin + entry("3", "2", "user", "three") + entry("5", "2", "user", "five"),
			"1 messages added, 2 already there"},
		{"rewound to the begin", "b.jsonl", begin + entry("6", "", "user", "six"), "1 messages added, 0 already there"},
		{"changed", "c.jsonl", begin + entry("3", "2", "user", "other") + entry("7", "3", "assistant", "seven"),
			"1 messages added, 2 already there"},
		{"without ids", "d.jsonl", `{"role":"user","content":"a"}` + "\n" + `{"role":"user","content":"b"}`,
			"2 messages added, 0 already there"},
		{"without ids, changed", "d.jsonl", `{"role":"user","content":"a"}` + "\n" + `{"role":"user","content":"x"}` + "\n" +
			`{"role":"user","content":"b"}`, "0 messages added, 0 already there"},
	} {
		file := filepath.Join(dir, step.file)
		if err := os.WriteFile(file, []byte(step.text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs := newLines(), newLines()
		code := run(t.Context(), p.asking("import", "sessions", "--agent="+agent, file), out, errs)
		changed, reason := strings.Contains(step.name, "changed"), "c.jsonl: message 3 (3): messages[2]: the otid"
		if step.file == "d.jsonl" {
			reason = "d.jsonl: from message 1 on: messages[1]: the otid"
		}
		if !strings.Contains(out.String(), step.want) || changed != (code != 0) ||
			changed != strings.Contains(errs.String(), reason) {
			t.Errorf("%s: got %d, want %q:\n%s\n%s", step.name, code, step.want, out, errs)
		}
	}
	list := call[[]struct{ ID, Summary string }](p, "GET", "/v1/conversations/?agent_id="+agent, nil)
	for _, c := range list {
		if !strings.HasPrefix(c.Summary, "a.jsonl (session-") {
			continue
		}
		raw, err := json.Marshal(call[any](p, "GET", "/v1/conversations/"+c.ID+"/messages?order=asc", nil))
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		for _, want := range []string{"one", "two", "three", "four", "five", "six", "seven"} {
			_, rest, ok := strings.Cut(text, `"`+want+`"`)
			if !ok {
				t.Errorf("%q does not come in its place: %s", want, raw)
			}
			text = rest
		}
	}
	if len(list) != 2 {
		t.Errorf("the conversations are %+v, want one of each session", list)
	}
}

// copyOf returns the path of a copy of a file under another name.
func copyOf(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "renamed")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// Sessions of each format are imported completely and once. Each message that a reader finds is in the log, or reported
// as left out.
func TestImportOfEachFormat(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	samples, err := filepath.Glob("../../compaction/lab/transcript/testdata/*[a-z]")
	if err != nil {
		t.Fatal(err)
	}
	formats, renamed := map[transcript.Format]bool{}, map[transcript.Format]bool{}
	for _, path := range samples {
		if filepath.Ext(path) == ".golden" {
			continue
		}
		sessions, _, err := readTranscripts(t.Context(), []string{path})
		if err != nil {
			t.Fatal(err)
		}
		messages := 0
		for _, s := range sessions {
			formats[s.Format] = true
			messages += len(s.Drafts)
		}
		agent := call[identified](p, "POST", "/v1/agents", map[string]any{"name": "a"}).ID
		added := fmt.Sprintf("1 files, %d sessions: %d messages added, 0 already there", len(sessions), messages)
		alreadyThere := fmt.Sprintf("1 files, %d sessions: 0 messages added, %d already there", len(sessions), messages)
		files, wants := []string{path, path}, []string{added, alreadyThere}
		if sessions[0].Session != "" {
			files, wants = append(files, copyOf(t, path)), append(wants, alreadyThere)
			renamed[sessions[0].Format] = true
		}
		for i, file := range files {
			out, errs := newLines(), newLines()
			code := run(t.Context(), p.asking("import", "sessions", "--agent="+agent, file), out, errs)
			if code != 0 || !strings.Contains(out.String(), wants[i]) {
				t.Errorf("%s: got %d, want %q:\n%s\n%s", file, code, wants[i], out, errs)
			}
		}
	}
	if len(renamed) < 3 {
		t.Errorf("sessions of the formats %v only have ids of their own", renamed)
	}
	if len(formats) < 8 {
		t.Errorf("the samples have the formats %v only, not all eight", formats)
	}
}

// An interrupted import says what it has taken in. Run again, it goes on without repeating anything.
func TestAnInterruptedImportGoesOn(t *testing.T) {
	t.Parallel()
	p := tenant(t)
	dir := t.TempDir()
	const sessions, messages = 4, 600 // two requests each
	for n := range sessions {
		var text strings.Builder
		for i := range messages {
			fmt.Fprintf(&text, `{"role":"user","content":"part %d of session %d"}`+"\n", i, n)
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.jsonl", n)), []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	agent := call[identified](p, "POST", "/v1/agents", map[string]any{"name": "a"}).ID
	ctx, end := context.WithCancelCause(t.Context())
	target, err := url.Parse(p.base)
	if err != nil {
		t.Fatal(err)
	}
	captures := 0
	proxy := httputil.NewSingleHostReverseProxy(target)
	between := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/messages/capture") {
			if captures++; captures == 4 {
				end(interruption{syscall.SIGINT})
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(between.Close)
	out, errs := newLines(), newLines()
	code := run(ctx, []string{"import", "sessions", "--agent=" + agent, dir, "--addr=" + between.URL,
		"--api-key=" + p.key}, out, errs)
	if want := "partial, until it ended early: 2 files, 1 sessions: 1100 messages added"; code != 130 ||
		!strings.Contains(out.String(), want) ||
		!strings.Contains(errs.String(), "interrupted (interrupt): what was taken in stays") {
		t.Errorf("ended with %d: %s %s", code, out, errs)
	}
	out, errs = newLines(), newLines()
	code = run(t.Context(), p.asking("import", "sessions", "--agent="+agent, dir), out, errs)
	if want := "4 files, 4 sessions: 1300 messages added, 1100 already there"; code != 0 ||
		!strings.Contains(out.String(), want) {
		t.Errorf("the second run ended with %d: %s %s", code, out, errs)
	}
}
