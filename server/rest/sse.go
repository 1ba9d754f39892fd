package rest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/labstack/echo/v4"
)

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
