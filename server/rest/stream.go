package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	pieceTimeout = 30 * time.Second // for the next piece of an answer to be taken

	// Heartbeat is the time between two comments in a stream of events without news.
	Heartbeat = 15 * time.Second
)

// Body returns a request's body of at most limitBytes. How slowly it may come, the API's BodyPace says.
func Body(c echo.Context, limitBytes int64) io.ReadCloser {
	return http.MaxBytesReader(c.Response(), c.Request().Body, limitBytes)
}

// Answer returns a request's answer. It may take any time while the client keeps reading.
func Answer(c echo.Context) http.ResponseWriter {
	return &streamWriter{c.Response(), http.NewResponseController(c.Response())}
}

type streamWriter struct {
	http.ResponseWriter
	connection *http.ResponseController
}

func (w *streamWriter) Write(p []byte) (int, error) {
	_ = w.connection.SetWriteDeadline(time.Now().Add(pieceTimeout)) // a test's recorder has none
	n, err := w.ResponseWriter.Write(p)
	_ = w.connection.SetWriteDeadline(time.Time{})
	return n, err
}

// FlushError sends what was written. It is an error if the client does not take it in time.
func (w *streamWriter) FlushError() error {
	_ = w.connection.SetWriteDeadline(time.Now().Add(pieceTimeout)) // a test's recorder has none
	err := w.connection.Flush()
	_ = w.connection.SetWriteDeadline(time.Time{})
	return err
}

// KeepOpen returns the context and the answer of a request that waits for what happens. Both end when the request's key
// is revoked or expires: an answer of server-sent events first gets a last event, which says why. Such an answer has
// comments between its events. stop ends both.
func (a *API) KeepOpen(c echo.Context, last func(problem error) string) (ctx context.Context, w http.ResponseWriter,
	stop func()) {
	ctx, cancel := context.WithCancel(c.Request().Context())
	answer := &kept{ResponseWriter: Answer(c), last: last, end: cancel, checked: time.Now(), every: a.KeyAge}
	answer.recheck, _ = ctx.Value(keyRecheck).(func() error)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer cancel()
		tick := time.NewTicker(Heartbeat)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !answer.beat() {
					return
				}
			}
		}
	}()
	return ctx, answer, func() { cancel(); <-done }
}

// kept is an answer that several goroutines write.
type kept struct {
	http.ResponseWriter
	recheck func() error // of the request's key; nil if it has none
	every   time.Duration
	last    func(problem error) string
	end     func() // of the request

	mu      sync.Mutex
	began   bool // an answer of server-sent events
	checked time.Time
	ended   error // why nothing more is sent
}

// Write implements io.Writer. ErrUnauthorized if the request's key no longer counts.
func (k *kept) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.began = strings.HasPrefix(k.Header().Get(echo.HeaderContentType), "text/event-stream")
	if k.began && time.Since(k.checked) > k.every {
		k.check()
	}
	if k.ended != nil {
		return 0, k.ended
	}
	return k.ResponseWriter.Write(p)
}

// check ends an answer whose key no longer counts. The caller holds k.mu.
func (k *kept) check() {
	if k.recheck == nil || k.ended != nil {
		return
	}
	k.checked = time.Now()
	err := k.recheck()
	if !errors.Is(err, ErrUnauthorized) {
		return
	}
	k.ended = err
	if k.began {
		_, _ = io.WriteString(k.ResponseWriter, k.last(err))     // the client may be gone
		_ = http.NewResponseController(k.ResponseWriter).Flush() // likewise
	}
	k.end()
}

// FlushError sends what was written.
func (k *kept) FlushError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return http.NewResponseController(k.ResponseWriter).Flush()
}

// beat checks the key, sends a comment if events were sent before, and reports whether the answer is still open.
func (k *kept) beat() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.check(); k.ended != nil || !k.began {
		return k.ended == nil
	}
	if _, err := io.WriteString(k.ResponseWriter, ": the server is here\n\n"); err != nil {
		return false
	}
	return http.NewResponseController(k.ResponseWriter).Flush() == nil
}

// ServeContent answers with a content, or the ranges of it that the request asks for. It returns an error for a range
// that the content does not have, and for a condition that does not hold.
func ServeContent(c echo.Context, modified time.Time, content io.ReadSeeker) error {
	w := &contentWriter{ResponseWriter: Answer(c)}
	http.ServeContent(w, c.Request(), "", modified, content)
	if w.refused == 0 {
		return nil
	}
	for _, name := range []string{echo.HeaderContentType, echo.HeaderContentDisposition, echo.HeaderContentLength} {
		c.Response().Header().Del(name)
	}
	return StatusProblem(w.refused, cmp.Or(strings.TrimSpace(string(w.detail)),
		"a condition of the request's headers does not hold: the file is another one than the client has"))
}

// contentWriter writes an answer that is no error, and keeps an error's text.
type contentWriter struct {
	http.ResponseWriter
	refused int // the status of an error
	detail  []byte
}

// WriteHeader implements http.ResponseWriter.
func (w *contentWriter) WriteHeader(status int) {
	if status >= http.StatusBadRequest {
		w.refused = status
		return
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implements io.Writer.
func (w *contentWriter) Write(p []byte) (int, error) {
	if w.refused > 0 {
		w.detail = append(w.detail, p...)
		return len(p), nil
	}
	return w.ResponseWriter.Write(p)
}

// Events is an answer of server-sent events. It ends when the request's key is revoked or expires, with a last event
// named error, whose data is the answer that a new request would get.
type Events struct {
	out     io.Writer
	answer  *echo.Response
	recheck func() error // of the request's key
}

// Event is a server-sent event. Head is its lines before the data.
type Event struct {
	Head string
	Data any
}

// NewEvents begins an answer of server-sent events.
func NewEvents(c echo.Context) *Events {
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	c.Response().WriteHeader(http.StatusOK)
	c.Response().Flush()
	recheck, ok := c.Request().Context().Value(keyRecheck).(func() error)
	if !ok {
		recheck = func() error { return nil }
	}
	return &Events{Answer(c), c.Response(), recheck}
}

// Send sends events at once. It reports whether the client is still there. ErrUnauthorized if the request's key was
// revoked. A key that cannot be looked up for now, because the database does not answer, counts until it can.
func (e *Events) Send(events ...Event) (bool, error) {
	if err := e.check(); errors.Is(err, ErrUnauthorized) {
		return false, err
	}
	return e.send(events...)
}

// SendLast sends events and the end of a stream, whatever has become of the request's key: they tell nothing but why
// the stream ends.
func (e *Events) SendLast(events ...Event) error {
	more, err := e.send(events...)
	if err == nil && more {
		e.SendDone()
	}
	return err
}

func (e *Events) send(events ...Event) (bool, error) {
	for _, event := range events {
		text, err := json.Marshal(event.Data)
		if err != nil {
			return false, err
		}
		if event.Head != "" {
			event.Head += "\n"
		}
		if !e.write(fmt.Sprintf("%sdata: %s\n\n", event.Head, text)) {
			return false, nil
		}
	}
	return true, nil
}

// SendDone sends the end of a stream as Letta's and OpenAI's clients know it.
func (e *Events) SendDone() { e.write("data: [DONE]\n\n") }

// SendHeartbeat sends a comment, and reports whether the client is still there and its key is not revoked.
func (e *Events) SendHeartbeat() bool {
	return !errors.Is(e.check(), ErrUnauthorized) && e.write(": the server is here\n\n")
}

// check returns ErrUnauthorized, after the last event, if the request's key no longer counts.
func (e *Events) check() error {
	err := e.recheck()
	if !errors.Is(err, ErrUnauthorized) {
		return err
	}
	text, failed := json.Marshal(ProblemOf(err))
	if failed == nil {
		e.write(fmt.Sprintf("event: error\ndata: %s\n\n", text))
	}
	return errors.Join(err, failed)
}

func (e *Events) write(text string) bool {
	if _, err := io.WriteString(e.out, text); err != nil {
		return false
	}
	e.answer.Flush()
	return true
}
