package llmtest

import (
	_ "embed"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// Wording is a provider's answer to a request that is larger than its model's window.
type Wording struct {
	Name   string `json:"name"`
	Status int    `json:"status"`
	Body   string `json:"body"` // with WINDOW and SENT in place of the tokens of the window and of the request
}

// HasWindow reports whether the body names the tokens of the window.
func (w Wording) HasWindow() bool { return strings.Contains(w.Body, "WINDOW") }

// HasSent reports whether the body names the tokens of the request.
func (w Wording) HasSent() bool { return strings.Contains(w.Body, "SENT") }

// Text returns the body for a window and a request.
func (w Wording) Text(window, sent int) string {
	return strings.NewReplacer("WINDOW", strconv.Itoa(window), "SENT", strconv.Itoa(sent)).Replace(w.Body)
}

func (w Wording) write(out http.ResponseWriter, window, sent int) {
	out.Header().Set("Content-Type", "application/json")
	out.WriteHeader(w.Status)
	_, _ = out.Write([]byte(w.Text(window, sent))) // the client may have disconnected
}

//go:embed wordings.json
var wordings []byte

// Wordings are the answers of known providers; the first is OpenAI's.
var Wordings = parseWordings()

func parseWordings() (all []Wording) {
	if err := json.Unmarshal(wordings, &all); err != nil {
		panic("llmtest: wordings.json: " + err.Error())
	}
	return all
}
