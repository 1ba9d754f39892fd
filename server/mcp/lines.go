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

// Lines carries a client's messages over a pair of streams, one message a line. A line that is no message is answered
// with an error, and the session goes on. The end of the input is passed on after all earlier requests are answered.
type Lines struct {
	in    *bufio.Reader
	out   io.Writer
	fault func(place string, value []byte) string
	late  time.Duration // how long to wait for answers after the end of the input

	mu      sync.Mutex
	waiting map[string]pending // unanswered requests, by idKey
	answers *sync.Cond         // signals that answers were given
	version string             // protocol version of the session, known after initialize is answered
	rest    []byte             // unread part of the current messages
}

// pending is an unanswered request.
type pending struct {
	method    string
	cancelled bool // the client cancelled it and wants no answer
}

// answerWithin bounds how long the end of the input waits for answers.
const answerWithin = 2 * time.Minute

// NewLines returns the Lines for a client. fault is as in Options.
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

// take puts the messages of a line into l.rest, or answers the line with an error.
func (l *Lines) take(text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if text[0] == '[' { // whether batches are allowed depends on the session's version
		for l.initializes() {
			l.answers.Wait()
		}
	}
	accepted, refused := l.screen(text)
	if refused != nil {
		answer, _ := json.Marshal(refused.message()) // all its values can be marshaled
		_, _ = l.out.Write(append(answer, '\n'))     // the client may be gone
		return
	}
	for _, m := range accepted.messages {
		switch {
		case m.isCall():
			l.waiting[idKey(m.id)] = pending{method: m.method}
		default:
			l.cancel(m.cancels())
		}
	}
	l.rest = accepted.lines()
}

// screen returns the messages of a line, or why the SDK must not get them.
func (l *Lines) screen(text []byte) (screened, *refusal) {
	if len(text) > MaxBodyBytes {
		return screened{}, invalid(nil, "the line has %d bytes; a message has at most %d", len(text), MaxBodyBytes)
	}
	if !json.Valid(text) {
		return screened{}, &refusal{err: &jsonrpc.Error{Code: jsonrpc.CodeParseError,
			Message: "The line is no JSON: send one message a line"}}
	}
	accepted, refused := screen(text, l.version, l.fault)
	for _, m := range accepted.messages {
		if _, ok := l.waiting[idKey(m.id)]; ok && m.isCall() {
			return accepted, invalid(nil, "another request with the id %s waits for its answer: give each an id of its own",
				db.Short(string(m.id)))
		}
	}
	return accepted, refused
}

// cancel notes that the client wants no answer to a request any more. A nil id does nothing.
func (l *Lines) cancel(id json.RawMessage) {
	key := idKey(id)
	if of, ok := l.waiting[key]; ok && id != nil {
		of.cancelled = true
		l.waiting[key] = of
	}
}

// awaitAnswers waits until all requests are answered, except those that never end, or until l.late has passed.
func (l *Lines) awaitAnswers() {
	l.mu.Lock()
	defer l.mu.Unlock()
	expired := false
	timer := time.AfterFunc(l.late, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		expired = true
		l.answers.Broadcast()
	})
	defer timer.Stop()
	for l.awaits() && !expired {
		l.answers.Wait()
	}
}

// awaits reports whether an answer is still due. The caller holds l.mu.
func (l *Lines) awaits() bool {
	for _, request := range l.waiting {
		if !request.cancelled && request.method != Listen {
			return true
		}
	}
	return false
}

// initializes reports whether the answer to initialize is still due, which sets the session's version. The caller holds
// l.mu.
func (l *Lines) initializes() bool {
	for _, request := range l.waiting {
		if request.method == "initialize" && !request.cancelled {
			return true
		}
	}
	return false
}

// outgoing holds the fields that distinguish answers from other messages.
type outgoing struct {
	ID     json.RawMessage `json:"id"`
	Method *string         `json:"method"`
	Error  *jsonrpc.Error  `json:"error"`
	Result struct {
		ProtocolVersion string `json:"protocolVersion"`
	} `json:"result"`
}

// Write implements io.Writer. p is a whole message, or the answers to a batch.
func (l *Lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	output := l.answered(bytes.TrimSpace(p))
	var batch []json.RawMessage
	if json.Unmarshal(p, &batch) == nil {
		var answers []json.RawMessage
		for _, answer := range batch {
			if answer = l.answered(answer); answer != nil {
				answers = append(answers, answer)
			}
		}
		output = nil
		if len(answers) > 0 {
			output, _ = json.Marshal(answers) // the answers came from JSON
		}
	}
	var err error
	if output != nil {
		_, err = l.out.Write(append(bytes.Clone(output), '\n'))
	}
	if err != nil {
		clear(l.waiting) // the client is gone
	}
	l.answers.Broadcast()
	return len(p), err
}

// answered notes the answer to a request, and returns it as the client should see it: nil if the client cancelled the
// request. It returns other messages unchanged.
func (l *Lines) answered(text []byte) []byte {
	var m outgoing
	if err := json.Unmarshal(text, &m); err != nil || m.Method != nil || m.ID == nil {
		return text
	}
	key := idKey(m.ID)
	request := l.waiting[key]
	delete(l.waiting, key)
	switch {
	case request.cancelled:
		return nil
	case request.method == "initialize" && m.Error == nil:
		l.version = m.Result.ProtocolVersion
	case m.Error != nil && m.Error.Code == 0: // the SDK gives no code to a request before initialize
		m.Error.Code = jsonrpc.CodeInvalidRequest
		text, _ = json.Marshal(answerMessage{"2.0", m.ID, m.Error}) // the answer came from JSON
	}
	return text
}

// Close implements io.Closer. It leaves the streams open.
func (*Lines) Close() error { return nil }
