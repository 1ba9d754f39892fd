package transcript_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/lab/transcript"
)

// told writes a transcript with a line per part.
func told(t transcript.Transcript) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q\n", t.Format, t.System)
	for _, d := range t.Drafts {
		id := "-"
		if d.OTID != nil {
			id = *d.OTID
		}
		for _, p := range d.Content {
			fmt.Fprintf(&b, "%s %s %s %s%s%s%s\n", id, d.Role, p.Type, p.CallID, p.Name, p.Input, p.Text)
		}
	}
	return b.String()
}

// file returns the text of a file.
func file(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Each file in testdata is a session in another format. Its golden file shows what is read from it.
func TestEachFormatIsRead(t *testing.T) {
	t.Parallel()
	goldens, err := filepath.Glob("testdata/*.golden")
	if err != nil || len(goldens) < 20 {
		t.Fatal(goldens, err)
	}
	for _, golden := range goldens {
		name := strings.TrimSuffix(golden, ".golden")
		all, err := transcript.Read(name, strings.NewReader(file(t, name)))
		if err != nil {
			t.Error(err)
			continue
		}
		texts := make([]string, len(all))
		for i, one := range all {
			texts[i] = told(one)
		}
		want, err := os.ReadFile(golden)
		if got := strings.Join(texts, "--\n"); err != nil || got != string(want) {
			t.Errorf("%s: %v, got:\n%s\nwant:\n%s", name, err, got, want)
		}
	}
}

// A file that cannot be read is refused with its line and the reason.
func TestWhatIsNoTranscriptIsRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                            "line 1: the file is empty",
		"[]":                          "line 1: the list is empty",
		"hello":                       "line 1: no valid JSON",
		"7":                           "line 1: expected an object",
		"{\"role\":\"user\",\n\"cont": "line 2: the JSON ends too early",
		"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\",\"content\":\"b\"}\n{bad}": "line 3: no valid JSON",
		"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"boss\"}":                          "line 2: role: expected",
		"[{\"role\":\"user\",\"content\":\"a\"},\n\n{\"role\":\"tool\",\"content\":\"b\"}]":   "line 3: tool_call_id",
		"{\"a\":1}":          "line 1: no session is known",
		"{\"messages\":[]}":  "has no messages",
		"{\"messages\":[1]}": "line 1: expected an object",
		"\n\xff":             "line 2: the text is no UTF-8",
		"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\", \n{\"role\":\"user\",\"content\":\"c\"}\n": "line 2: " +
			"the JSON ends too early",
		"{\"role\":\"user\",\n{\"role\":\"user\",\"content\":\"c\"}\n":                     "line 1: the JSON ends too early",
		"{\"role\":\"user\",\"content\":\"a\"}\n\n{\"role\":\"us\n{\"role\":\"user\"}\n":   "line 3: ",
		"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\"\n\n\n":                  "line 2: the JSON ends too early",
		"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\",}\n{\"role\":\"user\"}": "line 2: no valid JSON",
		"\ufeff{\"role\":\"user\",\"content\":\"a\"}\n{bad}":                               "line 2: no valid JSON",
		"{\"type\":\"session\",\"id\":\"s\"}\n" +
			"{\"type\":\"message\",\"id\":\"1\",\"message\":{\"role\":\"king\"}}": "line 2: no role \"king\"",
	} {
		_, err := transcript.Read("x", strings.NewReader(text))
		var at *transcript.Error
		if !errors.As(err, &at) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// A byte order mark before the text is ignored.
func TestAByteOrderMarkIsNoText(t *testing.T) {
	t.Parallel()
	all, err := transcript.Read("x", strings.NewReader("\ufeff{\"role\":\"user\",\"content\":\"a\"}"))
	if err != nil || len(all) != 1 || len(all[0].Drafts) != 1 {
		t.Errorf("got %+v, %v", all, err)
	}
}
