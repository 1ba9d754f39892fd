package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/server/servertest"
)

// Messages to an agent at work are answered one after the other, in the order in which they came, and those beyond the
// bound are refused at once.
func TestMessagesWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	r := newOwnRunner(t, "")
	r.own().TurnPatience = time.Hour
	const waiting = 16
	wait := make(chan struct{})
	r.model.Says(modeltest.Answer{Text: "to 0", Wait: wait})
	for i := range waiting {
		r.model.Says(modeltest.Answer{Text: fmt.Sprint("to ", i+1)})
	}
	body := func(i int) string { return fmt.Sprintf(`{"messages":[{"role":"user","content":"say %d"}]}`, i) }
	replies := []chan servertest.Reply{r.begun(body(0))}
	var want []string
	for i := range waiting {
		reply := make(chan servertest.Reply, 1)
		replies = append(replies, reply)
		go func() { reply <- r.call("POST", r.path(), body(i+1)) }()
		r.awaitLine(i + 1)
	}
	for _, refused := range []string{body(99), strings.Replace(body(99), `]}`, `],"when_busy":"refuse"}`, 1)} {
		if got := r.call("POST", r.path(), refused); got.Code != http.StatusConflict || !strings.Contains(got.Text, "run-") {
			t.Errorf("one more than may wait: got %d %s", got.Code, got.Text)
		}
	}
	close(wait)
	for i, reply := range replies {
		want = append(want, fmt.Sprintf("user_message say %d", i), fmt.Sprintf("assistant_message to %d", i))
		if got := r.answerOf(<-reply); len(got.Messages) != 1 || got.Messages[0]["content"] != fmt.Sprint("to ", i) {
			t.Errorf("message %d was answered with %v", i, got.Messages)
		}
	}
	checkSaid(t, "the log", r.log(), want)
	if n := r.own().Loop.InLine(); n != 0 {
		t.Errorf("%d requests wait though no run works", n)
	}
}

// awaitLine waits until a number of requests wait for their turn.
func (r runner) awaitLine(n int) {
	r.t.Helper()
	deadline, look := time.After(patience), time.NewTicker(time.Millisecond)
	defer look.Stop()
	for r.own().Loop.InLine() != n {
		select {
		case <-look.C:
		case <-deadline:
			r.t.Fatalf("%d requests wait, want %d", r.own().Loop.InLine(), n)
		}
	}
}

// attached is a client that says when its answer begins.
type attached struct {
	*httptest.ResponseRecorder
	begun chan struct{}
	once  sync.Once
}

func (a *attached) Write(text []byte) (int, error) {
	a.once.Do(func() { close(a.begun) })
	return a.ResponseRecorder.Write(text)
}

// A message that is sent again while its run works is given that run.
func TestADuplicateAttachesToItsRun(t *testing.T) {
	t.Parallel()
	r := newRunner(t, "")
	wait := make(chan struct{})
	r.model.Says(modeltest.Answer{Text: "Hello", Wait: wait})
	body := `{"messages":[{"role":"user","content":"Hi","otid":"one"}]}`
	first, ended := r.begun(body), make(chan struct{})
	again := &attached{ResponseRecorder: httptest.NewRecorder(), begun: make(chan struct{})}
	go func() {
		defer close(ended)
		r.ServeHTTP(again, servertest.Request("POST", r.path()+"/stream", body, r.headers()...))
	}()
	<-again.begun
	for _, other := range []string{strings.Replace(body, `]}`, `,{"role":"user","content":"More","otid":"two"}]}`, 1),
		strings.Replace(body, `]}`, `],"when_busy":"refuse"}`, 1)} {
		if got := r.call("POST", r.path(), other); got.Code != http.StatusConflict {
			t.Errorf("%s: got %d %s", other, got.Code, got.Text)
		}
	}
	close(wait)
	if got := r.answerOf(<-first); len(got.Messages) != 1 {
		t.Errorf("the first answer is %v", got.Messages)
	}
	<-ended
	if text := again.Body.String(); again.Code != http.StatusOK || strings.Count(text, `"Hello"`) != 1 {
		t.Errorf("attached: got %d %s", again.Code, text)
	}
	checkSaid(t, "the log", r.log(), []string{"user_message Hi", "assistant_message Hello"})
	if n := len(r.model.Requests()); n != 1 {
		t.Errorf("the model was asked %d times", n)
	}
}
