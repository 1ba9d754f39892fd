package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/server/mcp"
)

// after returns a stream's messages after an index.
func after(t *testing.T, store sdk.EventStore, session, stream string, index int) (texts []string, err error) {
	t.Helper()
	for data, err := range store.After(t.Context(), session, stream, index) {
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(data))
	}
	return texts, nil
}

// A stream can be resumed after any stored message, even if earlier messages were dropped.
func TestAResumedStreamMissesNothingThatIsKept(t *testing.T) {
	t.Parallel()
	store, _ := mcp.NewReplay()
	if err := store.Open(t.Context(), "s", ""); err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat([]byte("x"), mcp.MaxSessionReplayBytes/4)
	for i := range 10 {
		if err := store.Append(t.Context(), "s", "", append([]byte{byte('0' + i)}, long...)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := after(t, store, "s", "", 7)
	if err != nil || len(got) != 2 || got[0][0] != '8' || got[1][0] != '9' {
		t.Errorf("behind the message 7: %d messages, %v, want 8 and 9", len(got), err)
	}
	if got, err := after(t, store, "s", "", 0); err == nil {
		t.Errorf("behind a message that was dropped: %d messages, want an error", len(got))
	}
	if got, err := after(t, store, "s", "", 9); err != nil || len(got) != 0 {
		t.Errorf("behind the last message: %d messages, %v", len(got), err)
	}
	if got, err := after(t, store, "s", "", 10); err == nil {
		t.Errorf("behind a message that never was: %d messages, want an error", len(got))
	}
	if _, err := after(t, store, "other", "", -1); err == nil {
		t.Error("another session has the stream")
	}
	all, err := after(t, store, "s", "", -1)
	if err != nil || len(all) == 0 || all[len(all)-1][0] != '9' {
		t.Fatalf("from the beginning: %d messages, %v, want those that are kept", len(all), err)
	}
	if err := store.Append(t.Context(), "s", "", []byte("new")); err != nil {
		t.Fatal(err)
	}
	if got, err := after(t, store, "s", "", len(all)-1); err != nil || len(got) != 1 || got[0] != "new" {
		t.Errorf("behind those: %d messages, %v, want the new one", len(got), err)
	}
}

// However many calls the sessions make, the stored answers are bounded. After a session has ended, nothing of it is
// stored.
func TestWhatIsKeptOfStreamsIsBounded(t *testing.T) {
	t.Parallel()
	store, size := mcp.NewReplay()
	answer := bytes.Repeat([]byte("x"), 10_000)
	call := func(session, stream string) {
		t.Helper()
		for _, data := range [][]byte{nil, answer} { // the first has no text
			if err := store.Open(t.Context(), session, stream); err != nil {
				t.Fatal(err)
			}
			if err := store.Append(t.Context(), session, stream, data); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 1000 {
		call("one", fmt.Sprint(i))
	}
	if n, streams := size(); n > mcp.MaxSessionReplayBytes || streams > 250 {
		t.Errorf("a session keeps %d bytes of %d streams, want at most %d", n, streams, mcp.MaxSessionReplayBytes)
	}
	if _, err := after(t, store, "one", "999", -1); err != nil {
		t.Errorf("the newest answer: %v", err)
	}
	for i := range 10_000 {
		call(fmt.Sprint("session ", i%100), fmt.Sprint(i))
	}
	if n, _ := size(); n > mcp.MaxReplayBytes || n < mcp.MaxReplayBytes/2 {
		t.Errorf("all sessions keep %d bytes, want nearly %d", n, mcp.MaxReplayBytes)
	}
	for i := range 100 {
		if err := store.SessionClosed(t.Context(), fmt.Sprint("session ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.SessionClosed(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if n, streams := size(); n != 0 || streams != 0 {
		t.Errorf("sessions that ended keep %d bytes of %d streams", n, streams)
	}
	if err := store.Append(t.Context(), "one", "999", answer); err == nil {
		t.Error("a session that ended keeps more")
	}
}

// stuck is an answer to a client that does not read until it is released.
type stuck struct {
	*httptest.ResponseRecorder
	release <-chan struct{}
}

func (s stuck) Write(data []byte) (int, error) {
	<-s.release
	return s.ResponseRecorder.Write(data)
}

// A client that does not read does not block others, and the waiting data is bounded. A client that reads late gets
// everything.
func TestASlowReaderHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	message := bytes.Repeat([]byte("x"), 10_000)
	for name, test := range map[string]struct {
		messages int
		lost     bool
	}{"a late reader": {mcp.MaxBehind / 10_000, false}, "one that does not read": {3 * mcp.MaxBehind / 10_000, true}} {
		release := make(chan struct{})
		slow := stuck{httptest.NewRecorder(), release}
		ctx, cancel := context.WithCancel(t.Context())
		answer, wait := mcp.NewBufferedAnswer(slow, cancel)
		taken := 0
		for range test.messages {
			n, err := answer.Write(message) // without bufferedAnswer, it would wait for ever
			taken += n
			if err != nil {
				break
			}
		}
		if lost := ctx.Err() != nil; lost != test.lost || taken > 2*mcp.MaxBehind+3*len(message) {
			t.Errorf("%s: the answer has ended: %v, want %v; %d bytes were taken", name, lost, test.lost, taken)
		}
		if err := http.NewResponseController(answer).Flush(); err != nil {
			t.Errorf("%s: flush: %v", name, err)
		}
		close(release)
		wait()
		if got := slow.Body.Len(); !test.lost && got != taken {
			t.Errorf("%s: got %d of %d bytes", name, got, taken)
		}
		cancel()
	}
}
