package rest

import (
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

// Body is a request's body of at most some bytes, which may take as long as it keeps coming.
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

// Answer is a request's answer, which may take as long as the client keeps taking it.
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
