package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/loci-memory/loci/db"
)

// Lines are the messages of a client on a pair of streams, one a line. A line that is no message is answered with an
// error, and does not end the session. The end of the input is passed on when the requests before it are answered.
type Lines struct {
	in    *bufio.Reader
	out   io.Writer
	fault func(place string, value []byte) string
	late  time.Duration // after the end of the input, when answers are no longer awaited

	mu      sync.Mutex
	waiting map[string]pending // requests without an answer, by idKey
	answers *sync.Cond         // that some were given
	version string             // of the session, once initialize is answered
	rest    []byte             // of what is being read
}

// pending is a request without an answer.
type pending struct {
	method    string
	cancelled bool // by the client, which wants no answer any more
}

// answerWithin bounds how long the end of the input waits for answers.
const answerWithin = 2 * time.Minute

// NewLines returns the messages of a client. fault is that of Options.
func NewLines(in io.Reader, out io.Writer, fault func(place string, value []byte) string) *Lines {
	l := &Lines{in: bufio.NewReader(in), out: out, fault: fault, late: answerWithin, waiting: map[string]pending{}}
	l.answers = sync.NewCond(&l.mu)
	return l
}

// Read implements io.Reader. It returns whole messages.
func (l *Lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.in.ReadBytes('\n')
		if text := bytes.TrimSpace(line); len(text) > 0 {
			l.take(text)
		}
		if err != nil && len(l.rest) == 0 {
			l.awaitAnswers()
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// take keeps the messages of a line to be read, or answers why it does not.
func (l *Lines) take(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text[0] == '[' { // a batch, which the session's version may not have
		for l.initializes() {
			l.answers.Wait()
		}
	}
	in, why := l.screen(text)
	if why != nil {
		answer, _ := json.Marshal(why.message()) // it has no value that JSON lacks
		_, _ = l.out.Write(append(answer, '\n')) // a client that has gone misses it
		return
	}
	for _, m := range in.messages {
		switch {
		case m.isCall():
			l.waiting[idKey(m.id)] = pending{method: m.method}
		default:
			l.cancel(m.cancels())
		}
	}
	l.rest = in.lines()
}

// screen returns the messages of a line, or why they are not given to the SDK.
func (l *Lines) screen(text []byte) (screened, *refusal) {
	if len(text) > MaxBodyBytes {
		return screened{}, invalid(nil, "the line has %d bytes; a message has at most %d", len(text), MaxBodyBytes)
	}
	if !json.Valid(text) {
		return screened{}, &refusal{err: &jsonrpc.Error{Code: jsonrpc.CodeParseError,
			Message: "The line is no JSON: send one message a line"}}
	}
	in, why := screen(text, l.version, l.fault)
	for _, m := range in.messages {
		if _, ok := l.waiting[idKey(m.id)]; ok && m.isCall() {
			return in, invalid(nil, "another request with the id %s waits for its answer: give each an id of its own",
				db.Short(string(m.id)))
		}
	}
	return in, why
}

// cancel notes that the client wants no answer to the request with an id any more. It does nothing if id is nil.
func (l *Lines) cancel(id json.RawMessage) {
	key := idKey(id)
	if of, ok := l.waiting[key]; ok && id != nil {
		of.cancelled = true
		l.waiting[key] = of
	}
}

// awaitAnswers waits until the requests that have an end are answered, or until it is late.
func (l *Lines) awaitAnswers() {
	l.mu.Lock()
	defer l.mu.Unlock()
	late := false
	timer := time.AfterFunc(l.late, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		late = true
		l.answers.Broadcast()
	})
	defer timer.Stop()
	for l.awaits() && !late {
		l.answers.Wait()
	}
}

// awaits reports whether an answer is still to come. l.mu is held.
func (l *Lines) awaits() bool {
	for _, of := range l.waiting {
		if !of.cancelled && of.method != Listen {
			return true
		}
	}
	return false
}

// initializes reports whether the answer is still to come that says which version the session has. l.mu is held.
func (l *Lines) initializes() bool {
	for _, of := range l.waiting {
		if of.method == "initialize" && !of.cancelled {
			return true
		}
	}
	return false
}

// outgoing is what tells answers from other messages.
type outgoing struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Error  *jsonrpc.Error  `json:"error"`
	Result struct {
		ProtocolVersion string `json:"protocolVersion"`
	} `json:"result"`
}

// Write implements io.Writer. It is given a whole message, or the answers to a batch.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	shown := l.answered(bytes.TrimSpace(p))
	var batch []json.RawMessage
	if json.Unmarshal(p, &batch) == nil {
		var kept []json.RawMessage
		for _, one := range batch {
			if one = l.answered(one); one != nil {
				kept = append(kept, one)
			}
		}
		shown = nil
		if len(kept) > 0 {
			shown, _ = json.Marshal(kept) // it was read from JSON
		}
	}
	var err error
	if shown != nil {
		_, err = l.out.Write(append(bytes.Clone(shown), '\n'))
	}
	if err != nil {
		clear(l.waiting) // the client has gone
	}
	l.answers.Broadcast()
	return len(p), err
}

// answered notes that a request is answered, and returns the answer as the client sees it: nil if it cancelled the
// request. Other messages it returns as they are.
func (l *Lines) answered(text []byte) []byte {
	var m outgoing
	if err := json.Unmarshal(text, &m); err != nil || m.Method != nil || m.ID == nil {
		return text
	}
	key := idKey(m.ID)
	of := l.waiting[key]
	delete(l.waiting, key)
	switch {
	case of.cancelled:
		return nil
	case of.method == "initialize" && m.Error == nil:
		l.version = m.Result.ProtocolVersion
	case m.Error != nil && m.Error.Code == 0: // the SDK has no code for a request before initialize
		m.Error.Code = jsonrpc.CodeInvalidRequest
		text, _ = json.Marshal(answerMessage{"2.0", m.ID, m.Error}) // it was read from JSON
	}
	return text
}

// Close implements io.Closer. The streams stay open.
func (*Lines) Close() error { return nil }
