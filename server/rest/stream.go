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
	pieceTimeout = 30 * time.Second // time for a client to take the next piece of an answer

	// Heartbeat is the time between two comments in a stream of events without news.
	Heartbeat = 15 * time.Second
)

// Body returns a request's body, limited to limitBytes. The API's BodyPace bounds how slowly the body may come.
func Body(c echo.Context, limitBytes int64) io.ReadCloser {
	return http.MaxBytesReader(c.Response(), c.Request().Body, limitBytes)
}

// Answer returns the writer of a request's answer. The answer may take any time while the client keeps reading.
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

// FlushError sends the buffered bytes. It returns an error if the client does not take them in time.
func (w *streamWriter) FlushError() error {
	_ = w.connection.SetWriteDeadline(time.Now().Add(pieceTimeout)) // a test's recorder has none
	err := w.connection.Flush()
	_ = w.connection.SetWriteDeadline(time.Time{})
	return err
}

// KeepOpen returns a context and an answer for a request that waits for events. Both end when stop is called, or when
// the request's key is revoked or expires. In the latter case an answer of server-sent events first gets the event that
// last returns. While such an answer is open, it gets a comment every Heartbeat.
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

// kept is an answer that several goroutines may write to.
type kept struct {
	http.ResponseWriter
	recheck func() error // looks up the request's key again; nil if the request has none
	every   time.Duration
	last    func(problem error) string
	end     func() // ends the request

	mu      sync.Mutex
	began   bool // the answer is a stream of server-sent events that has begun
	checked time.Time
	ended   error // why nothing more may be sent
}

// Write implements io.Writer. ErrUnauthorized if the request's key is no longer valid.
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

// check ends the answer if its key is no longer valid. The caller holds k.mu.
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
		_ = http.NewResponseController(k.ResponseWriter).Flush() // the client may be gone
	}
	k.end()
}

func (k *kept) FlushError() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return http.NewResponseController(k.ResponseWriter).Flush()
}

// beat checks the key, sends a comment if the answer is a stream of events, and reports whether the answer is still
// open.
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

// ServeContent answers with a content, or with the ranges of it that the request asks for. It returns an error if the
// content lacks such a range, or if a condition in the request's headers does not hold.
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

// contentWriter passes an answer on; of an error it keeps the status and the text instead.
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

// Events is an answer of server-sent events. It ends when the request's key is revoked or expires: the last event is
// then named error, and its data is the answer that a new request would get.
type Events struct {
	out     io.Writer
	answer  *echo.Response
	recheck func() error // looks up the request's key again
}

// Event is a server-sent event. Head holds the lines before the data line.
type Event struct {
	Head string
	Data any
}

// NewEvents begins an answer of server-sent events: it sends the status and the headers.
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

// Send sends events at once, and reports whether the client is still there. ErrUnauthorized if the request's key was
// revoked. While the database cannot look the key up, the key counts as valid.
func (e *Events) Send(events ...Event) (bool, error) {
	if err := e.check(); errors.Is(err, ErrUnauthorized) {
		return false, err
	}
	return e.send(events...)
}

// SendLast sends events and the end of the stream, even if the request's key is no longer valid: the events only say
// why the stream ends.
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

// SendDone sends the end of a stream in the form that the clients of Letta and OpenAI expect.
func (e *Events) SendDone() { e.write("data: [DONE]\n\n") }

// SendHeartbeat sends a comment. It reports whether the client is still there and its key is valid.
func (e *Events) SendHeartbeat() bool {
	return !errors.Is(e.check(), ErrUnauthorized) && e.write(": the server is here\n\n")
}

// check returns ErrUnauthorized if the request's key is no longer valid. It sends the last event before.
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
