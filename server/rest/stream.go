package rest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	pieceTimeout = 30 * time.Second // for the next piece of a body to come, or of an answer to be taken

	// Heartbeat is the time between two comments in a stream of events without news.
	Heartbeat = 15 * time.Second
)

// Body returns a request's body of at most limitBytes. It may take any time while pieces keep coming.
func Body(c echo.Context, limitBytes int64) io.ReadCloser {
	return &streamReader{http.MaxBytesReader(c.Response(), c.Request().Body, limitBytes),
		http.NewResponseController(c.Response())}
}

type streamReader struct {
	io.ReadCloser
	connection *http.ResponseController
}

// Read implements io.Reader.
func (r *streamReader) Read(into []byte) (int, error) {
	_ = r.connection.SetReadDeadline(time.Now().Add(pieceTimeout)) // a test's recorder has none
	n, err := r.ReadCloser.Read(into)
	_ = r.connection.SetReadDeadline(time.Time{})
	return n, err
}

// Answer returns a request's answer. It may take any time while the client keeps reading.
func Answer(c echo.Context) http.ResponseWriter {
	return &streamWriter{c.Response(), http.NewResponseController(c.Response())}
}

type streamWriter struct {
	http.ResponseWriter
	connection *http.ResponseController
}

// Write implements io.Writer.
func (w *streamWriter) Write(p []byte) (int, error) {
	_ = w.connection.SetWriteDeadline(time.Now().Add(pieceTimeout)) // a test's recorder has none
	n, err := w.ResponseWriter.Write(p)
	_ = w.connection.SetWriteDeadline(time.Time{})
	return n, err
}

// Events is an answer of server-sent events.
type Events struct {
	out    io.Writer
	answer *echo.Response
}

// NewEvents begins an answer of server-sent events.
func NewEvents(c echo.Context) *Events {
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, "text/event-stream")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	c.Response().WriteHeader(http.StatusOK)
	c.Response().Flush()
	return &Events{Answer(c), c.Response()}
}

// Send sends an event at once: head is its lines before the data. It reports whether the client is still there.
func (e *Events) Send(head string, data any) (bool, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return false, err
	}
	return e.write(fmt.Sprintf("%s\ndata: %s\n\n", head, text)), nil
}

// SendHeartbeat sends a comment, and reports whether the client is still there.
func (e *Events) SendHeartbeat() bool { return e.write(": the server is here\n\n") }

func (e *Events) write(text string) bool {
	if _, err := io.WriteString(e.out, text); err != nil {
		return false
	}
	e.answer.Flush()
	return true
}
