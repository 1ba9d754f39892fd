package recall

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Envelope is the form in which Letta's server shows a tool's result to a model: a JSON object with the fields status
// ("OK" or "Failed"), message and time.
type Envelope struct {
	Time string `json:"time" doc:"When the tool returned, in the agent's timezone."` // in EnvelopeTime
	Raw  bool   `json:"raw,omitempty" doc:"The message is any JSON, not a text."`
}

// EnvelopeTime is the layout of an Envelope's time, which is in an agent's timezone.
const EnvelopeTime = "2006-01-02 03:04:05 PM MST-0700"

// The values of the field status.
const (
	envelopeOK     = "OK"
	envelopeFailed = "Failed"
)

// Wrap returns the envelope around a tool's result, with the bytes that Letta's server writes.
func (e Envelope) Wrap(message string, failed bool) string {
	status := envelopeOK
	if failed {
		status = envelopeFailed
	}
	if !e.Raw || !json.Valid([]byte(message)) { // the whole of a message that is cut is no JSON
		message = quoted(message)
	}
	return fmt.Sprintf("{\n  \"status\": %s,\n  \"message\": %s,\n  \"time\": %s\n}", quoted(status), message,
		quoted(e.Time))
}

// quoted returns a text as a JSON string, without escaping markup.
func quoted(text string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // a string can be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// OpenEnvelope returns what is in an Envelope. ok is false if a text is none.
func OpenEnvelope(text string) (e Envelope, message string, failed, ok bool) {
	if !strings.HasPrefix(strings.TrimSpace(text), "{") {
		return e, "", false, false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &fields) != nil || len(fields) != 3 || fields["message"] == nil {
		return e, "", false, false
	}
	var status string
	if json.Unmarshal(fields["status"], &status) != nil || json.Unmarshal(fields["time"], &e.Time) != nil ||
		status != envelopeOK && status != envelopeFailed {
		return e, "", false, false
	}
	if _, err := time.Parse(EnvelopeTime, e.Time); err != nil {
		return e, "", false, false
	}
	if json.Unmarshal(fields["message"], &message) != nil || string(fields["message"]) == "null" {
		e.Raw, message = true, string(fields["message"])
	}
	return e, message, status == envelopeFailed, true
}

// OpenEnvelope takes the result of a part out of the Envelope that it is in. It leaves other results.
func (p *Part) OpenEnvelope() {
	if p.Type != ToolReturn || len(p.Images) > 0 {
		return
	}
	if e, message, failed, ok := OpenEnvelope(p.Text); ok {
		p.Envelope, p.Text, p.IsError = &e, message, p.IsError || failed
	}
}
