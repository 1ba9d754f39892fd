package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"time"
)

// BodyPace bounds how long a server waits for the bytes of a request's body, or for a client to take the bytes of an
// answer. Time in which the server works on received bytes does not count. A zero field means the value in DefaultPace.
type BodyPace struct {
	Interval time.Duration // MinBytes, or the end of the body, must come in this time
	MinBytes int
	Rate     int64         // bytes a second, required of a long body after Interval; negative requires none
	Total    time.Duration // for the whole body
	Rest     time.Duration // time for reading what a handler left unread, before the connection is closed
}

// DefaultPace accepts short bodies over lines of 1 KiB a second, and long ones over lines of 64 KiB a second, for at
// most an hour.
var DefaultPace = BodyPace{Interval: 30 * time.Second, MinBytes: 30 << 10, Rate: 64 << 10, Total: time.Hour,
	Rest: 2 * time.Second}

// longBody is the size in bytes, declared or received, above which a body must keep the Rate of its BodyPace.
const longBody = 1 << 20

// WithDefaults returns the pace with zero fields replaced by those of DefaultPace.
func (p BodyPace) WithDefaults() BodyPace {
	d := DefaultPace
	return BodyPace{Interval: cmp.Or(p.Interval, d.Interval), MinBytes: cmp.Or(p.MinBytes, d.MinBytes),
		Rate: cmp.Or(p.Rate, d.Rate), Total: cmp.Or(p.Total, d.Total), Rest: cmp.Or(p.Rest, d.Rest)}
}

// maxRestBytes is the most that is read of a body that its handler left unread; net/http reads as much.
const maxRestBytes = 256 << 10

// Waiting adds up how long a server waited for bytes.
type Waiting struct {
	pace            BodyPace
	declared        int64 // bytes that the sender announced; negative if unknown
	total, interval time.Duration
	bytesInInterval int
	bytes           int64
}

// NewWaiting returns a Waiting with a pace. declared is the number of bytes that the sender announced, negative if
// unknown.
func NewWaiting(p BodyPace, declared int64) *Waiting {
	return &Waiting{pace: p.WithDefaults(), declared: declared}
}

// Patience returns how long to wait for the next bytes; 0 if the time is over.
func (w *Waiting) Patience() time.Duration {
	patience := min(w.pace.Interval-w.interval, w.pace.Total-w.total)
	if w.mustKeepRate() {
		earned := time.Duration(float64(w.bytes) / float64(w.pace.Rate) * float64(time.Second))
		patience = min(patience, w.pace.Interval+earned-w.total)
	}
	return max(patience, 0)
}

// mustKeepRate reports whether the bytes must keep the rate of a long body.
func (w *Waiting) mustKeepRate() bool { return w.pace.Rate > 0 && max(w.declared, w.bytes) > longBody }

// Note records that n bytes came after a wait of duration after.
func (w *Waiting) Note(n int, after time.Duration) {
	w.total, w.interval = w.total+after, w.interval+after
	w.bytes, w.bytesInInterval = w.bytes+int64(n), w.bytesInInterval+n
	if w.bytesInInterval >= w.pace.MinBytes {
		w.interval, w.bytesInInterval = 0, 0
	}
}

// pacedBody is a request's body that fails with a 408 if it comes too slowly. A Read ends when the request's context
// ends.
type pacedBody struct {
	io.ReadCloser
	*Waiting
	ctx        context.Context //nolint:containedctx // of the request
	connection *http.ResponseController

	over, incomplete bool // the end was read; and: nobody can read the rest any more
}

// Read implements io.Reader. At the end of the body it removes the deadline, because a deadline that passes while the
// request is served would cancel the request. After an error the deadline stays: nobody waits for that body any more.
func (b *pacedBody) Read(buffer []byte) (int, error) {
	if b.incomplete {
		return 0, b.tooSlow()
	}
	start := time.Now()
	_ = b.connection.SetReadDeadline(start.Add(b.Patience())) // a test's recorder has none
	if b.ctx.Err() != nil {
		b.interrupt()
	}
	n, err := b.ReadCloser.Read(buffer)
	b.Note(n, time.Since(start))
	switch {
	case errors.Is(err, io.EOF):
		b.over = true
		_ = b.connection.SetReadDeadline(time.Time{})
	case errors.Is(err, os.ErrDeadlineExceeded):
		b.incomplete = true
		err = b.tooSlow()
	case err != nil:
		b.incomplete = true
	}
	return n, err
}

// interruptAtEnd interrupts reads of the body once ctx ends. After stop has returned nothing touches the connection,
// which may serve another request by then.
func (b *pacedBody) interruptAtEnd(ctx context.Context) (stop func()) {
	done := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		defer close(done)
		b.interrupt()
	})
	return func() {
		if !cancel() {
			<-done
		}
	}
}

// interrupt ends a Read that waits.
func (b *pacedBody) interrupt() { _ = b.connection.SetReadDeadline(time.Now()) }

func (b *pacedBody) tooSlow() error {
	pace := fmt.Sprintf("at least %d bytes in %s", b.pace.MinBytes, b.pace.Interval)
	if b.mustKeepRate() {
		pace = fmt.Sprintf("a body of more than %d bytes with at least %d bytes a second", longBody, b.pace.Rate)
	}
	return newProblem(codeSlow, fmt.Sprintf("The request's body came too slowly, or not to its end: send %s, and all of "+
		"it in %s", pace, b.pace.Total))
}

// finish reads what the handler left of a body, so that the client reads the answer and the connection can serve the
// next request. It returns false if the connection must be closed instead.
func (b *pacedBody) finish(declared int64) bool {
	if b.over {
		return true
	}
	if b.incomplete || declared-b.bytes > maxRestBytes {
		return false
	}
	b.Waiting = NewWaiting(BodyPace{Interval: b.pace.Rest, Rate: -1, Total: b.pace.Rest}, -1)
	_, err := io.CopyN(io.Discard, b, maxRestBytes)
	return errors.Is(err, io.EOF)
}

func pacedBy(pace BodyPace, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		body := &pacedBody{ReadCloser: r.Body, Waiting: NewWaiting(pace, r.ContentLength), ctx: r.Context(),
			connection: http.NewResponseController(w)}
		defer body.interruptAtEnd(r.Context())()
		r = r.WithContext(r.Context()) // net/http compares the body with its own
		r.Body = body
		answer := &afterBody{ResponseWriter: w, body: body, request: r}
		next.ServeHTTP(answer, r)
		answer.linger()
	})
}

// afterBody is an answer that begins after the rest of the request's body was read.
type afterBody struct {
	http.ResponseWriter
	body    *pacedBody
	request *http.Request
	began   sync.Once
}

// begin reads the rest of the body. If there is too much of it, the connection is closed after the answer.
func (w *afterBody) begin() {
	w.began.Do(func() {
		pace, waits := w.body.pace, w.request.Header.Get("Expect") != "" && w.body.bytes == 0
		if waits { // for permission to send the body: net/http closes the connection
			_ = w.body.connection.SetReadDeadline(time.Now().Add(pace.Rest))
			return
		}
		if w.body.finish(w.request.ContentLength) {
			return
		}
		w.Header().Set("Connection", "close")
		pause := pace.Rest // net/http reads on this long, then waits until the client has read the answer
		if w.body.incomplete {
			pause = 0
		}
		_ = w.body.connection.SetReadDeadline(time.Now().Add(pause))
	})
}

// linger sends the answer and reads on for a while, if the client was told to send its body (Expect: 100-continue).
// net/http would close that connection at once, and the client might never read the answer.
func (w *afterBody) linger() {
	if w.request.Header.Get("Expect") == "" || w.body.bytes == 0 || w.body.over || w.body.incomplete {
		return
	}
	if w.FlushError() != nil {
		return
	}
	for deadline := time.Now().Add(w.body.pace.Rest); time.Now().Before(deadline); {
		if _, err := io.CopyN(io.Discard, w.body.ReadCloser, maxRestBytes); err != nil {
			return
		}
	}
}

// WriteHeader implements http.ResponseWriter.
func (w *afterBody) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.begin()
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (w *afterBody) Write(p []byte) (int, error) {
	w.begin()
	return w.ResponseWriter.Write(p)
}

// FlushError is the method that http.ResponseController calls to flush.
func (w *afterBody) FlushError() error {
	w.begin()
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Unwrap lets http.ResponseController reach the connection.
func (w *afterBody) Unwrap() http.ResponseWriter { return w.ResponseWriter }
