package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/db/dbtest"
)

// Recorded sessions are taken into an agent with their times, in their order. What is no session is reported with its
// line. A second run adds nothing, and one after a recording has grown adds what is new.
func TestImportOfSessions(t *testing.T) {
	t.Parallel()
	p := serve(t, "--database-url="+dbtest.EmptyURL(t))
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
	agent := call[identified](p, "POST", "/v1/agents", map[string]any{"name": "a"}).ID
	took := func(want int) string {
		t.Helper()
		out, errs := newLines(), newLines()
		if code := run(t.Context(), []string{"import", "sessions", "--addr=" + p.base, "--agent=" + agent, dir}, out,
			errs); code != want {
			t.Fatalf("got %d:\n%s\n%s", code, out, errs)
		}
		return out.String() + errs.String()
	}
	if said := took(1); !strings.Contains(said, "1 files, 1 sessions: 3 messages added, 0 already there") ||
		!strings.Contains(said, "broken.jsonl, line 2: the JSON ends too early") ||
		!strings.Contains(said, "left out: 1 system prompts") {
		t.Errorf("the first run said %s", said)
	}
	write("broken.jsonl", "{\"role\":\"user\",\"content\":\"x\"}\n")
	write("chat.jsonl", chat+`{"role":"assistant","content":"7003","timestamp":"2026-03-09T09:00:09Z"}`+"\n")
	if said := took(0); !strings.Contains(said, "2 files, 2 sessions: 2 messages added, 3 already there") {
		t.Errorf("the second run said %s", said)
	}
	if said := took(0); !strings.Contains(said, "0 messages added, 5 already there") {
		t.Errorf("the third run said %s", said)
	}
	type conversation struct{ ID, Summary string }
	list := call[[]conversation](p, "GET", "/v1/conversations/?agent_id="+agent, nil)
	at := -1
	for i, c := range list {
		if strings.HasPrefix(c.Summary, "chat.jsonl (session-") {
			at = i
		}
	}
	if at < 0 || len(list) != 2 {
		t.Fatalf("the conversations are %+v", list)
	}
	raw, err := json.Marshal(call[any](p, "GET", "/v1/conversations/"+list[at].ID+"/messages?order=asc", nil))
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

// The sessions of each format are taken in whole, and once: what a reader finds is in the log, or said to be left out.
func TestImportOfEachFormat(t *testing.T) {
	t.Parallel()
	p := serve(t, "--database-url="+dbtest.EmptyURL(t))
	samples, err := filepath.Glob("../../compaction/lab/transcript/testdata/*[a-z]")
	if err != nil {
		t.Fatal(err)
	}
	formats := map[transcript.Format]bool{}
	for _, path := range samples {
		if filepath.Ext(path) == ".golden" {
			continue
		}
		sessions, err := readTranscripts([]string{path})
		if err != nil {
			t.Fatal(err)
		}
		messages := 0
		for _, s := range sessions {
			formats[s.Format] = true
			messages += len(s.Drafts)
		}
		agent := call[identified](p, "POST", "/v1/agents", map[string]any{"name": "a"}).ID
		for _, want := range []string{fmt.Sprintf("1 files, %d sessions: %d messages added, 0 already there", len(sessions),
			messages), fmt.Sprintf("1 files, %d sessions: 0 messages added, %d already there", len(sessions), messages)} {
			out, errs := newLines(), newLines()
			code := run(t.Context(), []string{"import", "sessions", "--addr=" + p.base, "--agent=" + agent, path}, out, errs)
			if code != 0 || !strings.Contains(out.String(), want) {
				t.Errorf("%s: got %d, want %q:\n%s\n%s", path, code, want, out, errs)
			}
		}
	}
	if len(formats) < 5 {
		t.Errorf("the samples have the formats %v only, not all five", formats)
	}
}
