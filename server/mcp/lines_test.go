package mcp_test

import (
	"bufio"
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/loci-memory/loci/server/mcp"
)

// At the end of the input, Lines waits for the answers to all requests, however their ids are written, and for nothing
// else.
func TestTheEndOfTheInputWaitsForAnswers(t *testing.T) {
	t.Parallel()
	const end = `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}`
	input := strings.Join([]string{`{"jsonrpc":"2.0","id":1e1,"method":"ping"}`,
		`[{"jsonrpc":"2.0","id":"\u0062","method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"}]`,
		`{"jsonrpc":"2.0","id":"c","method":"ping"}`, end, `{"jsonrpc":"2.0","id":null,"method":"ping"}`,
		`{"jsonrpc":"2.0","id":"l","method":"subscriptions/listen","params":{"notifications":{}}}`}, "\n")
	var output bytes.Buffer
	l := mcp.NewEndlessLines(strings.NewReader(input), &output)
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
	got := output.String()
	for text, want := range map[string]int{`"id":10,`: 1, `"id":"b",`: 1, `"id":"c",`: 0, `"id":null,"error"`: 1} {
		if n := strings.Count(got, text); n != want {
			t.Errorf("%s was written %d times, want %d: %s", text, n, want, got)
		}
	}
}

// A batch that arrives before the answer to initialize is judged by the version in that answer.
func TestABatchWaitsForTheVersionOfTheSession(t *testing.T) {
	t.Parallel()
	const batch = `[{"jsonrpc":"2.0","id":"b","method":"ping"}]` + "\n"
	input := `{"jsonrpc":"2.0","id":"i","method":"initialize","params":{}}` + "\n" + batch
	for version, want := range map[string]string{"2025-03-26": batch, "2025-06-18": ""} {
		var output bytes.Buffer
		l := mcp.NewEndlessLines(strings.NewReader(input), &output)
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
		if refused := strings.Contains(output.String(), "have no batches"); refused != (want == "") {
			t.Errorf("%s: wrote %s", version, output.String())
		}
	}
}

// lineWriter sends each written line to a channel.
type lineWriter chan<- string

func (w lineWriter) Write(p []byte) (int, error) {
	for line := range strings.Lines(string(p)) {
		w <- line
	}
	return len(p), nil
}
