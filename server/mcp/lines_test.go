package mcp_test

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/mcp"
)

// The end of the input waits for the answers of requests, however their ids are written, and for no others.
func TestTheEndOfTheInputWaitsForAnswers(t *testing.T) {
	t.Parallel()
	const end = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}`
	in := strings.Join([]string{`{"jsonrpc":"2.0","id":1e1,"method":"ping"}`,
		`[{"jsonrpc":"2.0","id":"\u0062","method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"}]`,
		`{"jsonrpc":"2.0","id":"c","method":"ping"}`, end, `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{}}}`}, "\n")
	var out bytes.Buffer
	l := mcp.NewEndlessLines(strings.NewReader(in), &out)
	read := make(chan string)
	go func() {
		defer close(read)
		for _, err := io.Copy(lineWriter(read), l); err != nil; {
			t.Error(err)
			return
		}
	}()
	for line := range read {
		switch {
		case strings.HasPrefix(line, "["):
			if want := `[{"jsonrpc":"2.0","id":"\u0062","method":"ping"}]` + "\n"; line != want {
				t.Errorf("read the batch %s, want %s", line, want)
			}
			_, _ = l.Write([]byte(`[{"jsonrpc":"2.0","id":"b","result":{}}]` + "\n"))
		case strings.Contains(line, "1e1"):
			_, _ = l.Write([]byte(`{"jsonrpc":"2.0","id":10,"result":{}}` + "\n"))
		case line == end+"\n":
			_, _ = l.Write([]byte(`{"jsonrpc":"2.0","id":"c","result":{}}` + "\n"))
		}
	}
	got := out.String()
	for text, want := range map[string]int{`"id":10,`: 1, `"id":"b",`: 1, `"id":"c",`: 0, `"id":null,"error"`: 1} {
		if n := strings.Count(got, text); n != want {
			t.Errorf("%s was written %d times, want %d: %s", text, n, want, got)
		}
	}
}

// A batch that comes before initialize is answered is judged by the version that the answer names.
func TestABatchWaitsForTheVersionOfTheSession(t *testing.T) {
	t.Parallel()
	const batch = `[{"jsonrpc":"2.0","id":"b","method":"ping"}]` + "\n"
	in := `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}` + "\n" + batch
	for version, want := range map[string]string{"2025-03-26": batch, "2025-06-18": ""} {
		var out bytes.Buffer
		l := mcp.NewEndlessLines(strings.NewReader(in), &out)
		read := bufio.NewReader(l)
		if _, err := read.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		answer := `{"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"` + version + `"}}` + "\n"
		go func() { _, _ = l.Write([]byte(answer)) }()
		got, err := read.ReadString('\n')
		if got != want {
			t.Errorf("%s: read %q (%v), want %q", version, got, err, want)
		}
		if want != "" {
			_, _ = l.Write([]byte(`[{"jsonrpc":"2.0","id":"b","result":{}}]` + "\n"))
		}
		if refused := strings.Contains(out.String(), "have no batches"); refused != (want == "") {
			t.Errorf("%s: wrote %s", version, out.String())
		}
	}
}

// lineWriter sends what is written.
type lineWriter chan<- string

// Write implements io.Writer.
func (w lineWriter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		w <- line
	}
	return len(p), nil
}
