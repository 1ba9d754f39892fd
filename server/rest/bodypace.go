package rest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/labstack/echo/v4"
)

// BodyPace bounds the time that a server waits for the bytes of a request's body. The time in which nothing is read,
// because what came is worked on, does not count. Zero fields are those of DefaultPace.
type BodyPace struct {
	Interval time.Duration // in which MinBytes must come, or the end
	MinBytes int
	Total    time.Duration // for the whole body
	Rest     time.Duration // for what a handler leaves unread, before the connection is closed
}

// DefaultPace takes a body from any line that carries 1 KiB a second, for at most an hour.
var DefaultPace = BodyPace{Interval: 30 * time.Second, MinBytes: 30 << 10, Total: time.Hour, Rest: 2 * time.Second}

// maxRestBytes is the most that is read of a body behind its handler, as much as net/http reads.
const maxRestBytes = 256 << 10

// waiting is how long a body was waited for.
type waiting struct {
	pace             BodyPace
	total, interval  time.Duration
	bytesInInterval  int
	bytes            int64
	over, incomplete bool // the end was read; the body cannot be read any more
}

// patience returns how long to wait for the next bytes.
func (w *waiting) patience() time.Duration {
	return max(min(w.pace.Interval-w.interval, w.pace.Total-w.total), 0)
}

// read notes that n bytes came after a time.
func (w *waiting) read(n int, after time.Duration) {
	w.total, w.interval = w.total+after, w.interval+after
	w.bytes, w.bytesInInterval = w.bytes+int64(n), w.bytesInInterval+n
	if w.bytesInInterval >= w.pace.MinBytes {
		w.interval, w.bytesInInterval = 0, 0
	}
}

// pacedBody is a request's body that fails with a 408 if it comes too slowly. The end of the request's context ends a
// Read.
type pacedBody struct {
	io.ReadCloser
	waiting
	ctx        context.Context //nolint:containedctx // of the request
	connection *http.ResponseController
}

// Read implements io.Reader. At the end of the body it removes the deadline, because one that passes while the request
// is served would cancel it. After an error the deadline stays: nobody waits for that body any more.
func (b *pacedBody) Read(into []byte) (int, error) {
	if b.incomplete {
		return 0, b.tooSlow()
	}
	began := time.Now()
	_ = b.connection.SetReadDeadline(began.Add(b.patience())) // a test's recorder has none
	if b.ctx.Err() != nil {
		b.interrupt()
	}
	n, err := b.ReadCloser.Read(into)
	b.read(n, time.Since(began))
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

// interruptAtEnd interrupts the body once ctx ends, until stop is called. Once stop has returned nothing touches the
// connection, which may be that of another request by then.
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
	return newProblem(codeSlow, fmt.Sprintf("The request's body came too slowly, or not to its "+
		"end: send at least %d bytes in %s, and all of it in %s", b.pace.MinBytes, b.pace.Interval, b.pace.Total))
}

// finish reads the rest of a body that its handler left, so that the client reads the answer, and the connection serves
// its next request. It reports false if the connection must be closed instead.
func (b *pacedBody) finish(declared int64) bool {
	if b.over {
		return true
	}
	if b.incomplete || declared-b.bytes > maxRestBytes {
		return false
	}
	b.pace.Interval, b.pace.Total, b.total, b.interval = b.pace.Rest, b.pace.Rest, 0, 0
	_, err := io.CopyN(io.Discard, b, maxRestBytes)
	return errors.Is(err, io.EOF)
}

// paceBodies bounds the time in which bodies come, whoever sends them and whether or not a handler reads them.
func (a *API) paceBodies(next echo.HandlerFunc) echo.HandlerFunc {
	pace := BodyPace{Interval: cmp.Or(a.Pace.Interval, DefaultPace.Interval),
		MinBytes: cmp.Or(a.Pace.MinBytes, DefaultPace.MinBytes), Total: cmp.Or(a.Pace.Total, DefaultPace.Total),
		Rest: cmp.Or(a.Pace.Rest, DefaultPace.Rest)}
	return func(c echo.Context) error {
		r := c.Request()
		if r.Body == nil || r.Body == http.NoBody {
			return next(c)
		}
		body := &pacedBody{ReadCloser: r.Body, waiting: waiting{pace: pace}, ctx: r.Context(),
			connection: http.NewResponseController(c.Response().Writer)}
		r.Body = body
		defer body.interruptAtEnd(r.Context())()
		c.Response().Before(func() {
			if r.Header.Get("Expect") != "" && body.bytes == 0 {
				return // net/http closes the connection of a client that waits to be told to send
			}
			if body.finish(r.ContentLength) {
				return
			}
			c.Response().Header().Set("Connection", "close")
			rest := pace.Rest // net/http reads on for so long, and then waits until the client has read the answer
			if body.incomplete {
				rest = 0
			}
			_ = body.connection.SetReadDeadline(time.Now().Add(rest))
		})
		return next(c)
	}
}
