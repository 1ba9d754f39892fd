package mcp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/db"
)

// methods are those that are served. In older versions of the protocol the SDK answers one that it does not know with a
// bare text, and serves logging/setLevel, although nothing is logged to clients.
var methods = []string{"completion/complete", "server/discover", "initialize", "ping", "prompts/list", "prompts/get",
	"tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read",
	"resources/subscribe", Listen, "resources/unsubscribe", cancelled, "notifications/initialized",
	"notifications/roots/list_changed", "notifications/progress"}

// maxID bounds the numbers that are ids: the SDK reads them as floats, which have each whole number below it.
const maxID = 1 << 53

// message is what is looked at of a message before the SDK reads it.
type message struct {
	raw    json.RawMessage
	fields map[string]json.RawMessage
	method string
	id     json.RawMessage // nil if it has none
	params json.RawMessage
}

// isCall reports whether the message waits for an answer.
func (m message) isCall() bool { return m.method != "" && len(m.id) > 0 }

// isUnknown reports whether the message is a notification that nobody knows. The protocol has them ignored.
func (m message) isUnknown() bool {
	return len(m.id) == 0 && m.method != "" && !slices.Contains(methods, m.method)
}

// version returns the version of the protocol that the message names; empty if it names none.
func (m message) version() string {
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	version := ""
	if json.Unmarshal(m.params, &params) == nil {
		_ = json.Unmarshal(params.Meta[sdk.MetaKeyProtocolVersion], &version) // the SDK refuses one that is no text
	}
	return version
}

// textOf returns a value that is a text; empty if it is none.
func textOf(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

// wrong returns why a message is none of JSON-RPC, in a sentence; empty if it is one.
func (m message) wrong() string {
	_, isRequest := m.fields["method"]
	_, succeeds := m.fields["result"]
	failure, fails := m.fields["error"]
	var problem jsonrpc.Error
	switch {
	case textOf(m.fields["jsonrpc"]) != "2.0":
		return `jsonrpc: expected "2.0"`
	case m.id != nil && !keptID(m.id):
		return fmt.Sprintf("the id %s is not answered as it is: an id is a text, or a whole number of less than 2^53",
			db.Short(string(m.id)))
	case isRequest && m.method == "":
		return "method: expected the name of a method"
	case !isRequest && !succeeds && !fails:
		return "method is missing"
	case !isRequest && m.id == nil:
		return "id is missing: an answer has that of its request"
	case fails && (kindOf(failure) != objectKind || json.Unmarshal(failure, &problem) != nil):
		return "error: expected an object with code and message"
	case isRequest && m.id == nil && slices.Contains(methods, m.method) && !strings.HasPrefix(m.method, notifications):
		return "id is missing: " + m.method + " is answered"
	}
	return ""
}

// notifications is what the methods that are not answered begin with.
const notifications = "notifications/"

// messagesIn returns the messages of a body: one, or those of a batch. False if it is neither.
func messagesIn(body []byte) (all []message, ok bool) {
	var raw []json.RawMessage
	switch body = bytes.TrimSpace(body); {
	case bytes.HasPrefix(body, []byte("{")):
		raw = []json.RawMessage{body}
	case json.Unmarshal(body, &raw) != nil || len(raw) == 0:
		return nil, false
	}
	for _, one := range raw {
		var fields map[string]json.RawMessage
		if json.Unmarshal(one, &fields) != nil || fields == nil {
			return nil, false
		}
		all = append(all, message{raw: one, fields: fields, method: textOf(fields["method"]), id: fields["id"],
			params: fields["params"]})
	}
	return all, true
}

// refusal is the answer to a body that the SDK would answer otherwise than JSON-RPC says.
type refusal struct {
	status int
	id     json.RawMessage // nil is null
	err    *jsonrpc.Error
}

// invalid returns the refusal of a message with an id that is none of the protocol.
func invalid(id json.RawMessage, format string, args ...any) *refusal {
	if id != nil && !keptID(id) {
		id = nil
	}
	return &refusal{http.StatusBadRequest, id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
		Message: fmt.Sprintf(format, args...)}}
}

// screened are the messages of a body that are given to the SDK: all but notifications that nobody knows.
type screened struct {
	messages []message
	batch    bool
}

// body returns the messages as one JSON value.
func (s screened) body() []byte {
	if !s.batch {
		return s.messages[0].raw
	}
	raw := make([][]byte, len(s.messages))
	for i, m := range s.messages {
		raw[i] = m.raw
	}
	return slices.Concat([]byte("["), bytes.Join(raw, []byte(",")), []byte("]"))
}

// lines returns the messages as lines of a stream. Those of a batch that are not answered have lines of their own: the
// SDK would wait for their answers.
func (s screened) lines() (lines []byte) {
	calls := screened{batch: s.batch}
	for _, m := range s.messages {
		if m.isCall() {
			calls.messages = append(calls.messages, m)
			continue
		}
		lines = append(append(lines, m.raw...), '\n')
	}
	if len(calls.messages) > 0 {
		lines = append(append(lines, calls.body()...), '\n')
	}
	return lines
}

// maxBatch bounds the messages of a batch: all are worked on at the same time, and all answers are in memory.
const maxBatch = 50

// firstWithoutBatches is the first version of the protocol without batches.
const firstWithoutBatches = "2025-06-18"

// screen returns the messages of a body of a version of the protocol that are given to the SDK, or why none is. fault
// is that of Options.
func screen(body []byte, version string, fault func(place string, value []byte) string) (screened, *refusal) {
	all, ok := messagesIn(body)
	if !ok {
		return screened{}, invalid(nil, "a message is a JSON object")
	}
	in := screened{batch: bytes.HasPrefix(bytes.TrimSpace(body), []byte("["))}
	if len(all) > maxBatch {
		return in, invalid(nil, "the batch has %d messages; at most %d are taken at once", len(all), maxBatch)
	}
	seen := map[string]bool{}
	for _, m := range all {
		why := m.refused(version, fault)
		switch {
		case why != nil && in.batch:
			return in, invalid(nil, "%s; nothing of the batch was done", why.err.Message)
		case why != nil:
			return in, why
		case in.batch && max(version, m.version()) >= firstWithoutBatches:
			return in, invalid(nil, "the versions of the protocol from %s on have no batches: send each message alone",
				firstWithoutBatches)
		case m.isCall() && seen[idKey(m.id)]:
			return in, invalid(nil, "two messages of the batch have the id %s", db.Short(string(m.id)))
		case m.isCall():
			seen[idKey(m.id)] = true
		case m.isUnknown():
			continue
		}
		in.messages = append(in.messages, m)
	}
	return in, nil
}

// refused returns why a message is not given to the SDK; nil if it is.
func (m message) refused(version string, fault func(place string, value []byte) string) *refusal {
	if why := m.wrong(); why != "" {
		return invalid(m.id, "%s", why)
	}
	why := fault("", m.raw)
	if m.method == callTool && strings.HasPrefix(why, argumentsPlace+".") {
		why = "" // the result of the call says it to the model
	}
	if why == "" && m.isCall() {
		why = wrongParams(m.method, m.params)
	}
	switch {
	case why != "" && m.isCall() && strings.HasPrefix(why, "params"):
		return &refusal{statusOf(version), m.id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: why}}
	case why != "":
		return invalid(nil, "%s", why)
	case version < firstStateless && m.isCall() && !slices.Contains(methods, m.method):
		return &refusal{http.StatusOK, m.id, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
			Message: "there is no method " + db.Short(m.method)}}
	}
	return nil
}

// headersOnce are the headers that may have one value only.
var headersOnce = []string{sessionHeader, versionHeader, MethodHeader, nameHeader, lastEventHeader}

// Twice returns a sentence about the first of some headers that has two different values, empty if no header has.
func Twice(h http.Header, names ...string) string {
	for _, name := range names {
		if given := h.Values(name); len(slices.Compact(slices.Clone(given))) > 1 {
			return fmt.Sprintf("the header %s has the values %s and %s: send it once", name, db.Short(given[0]),
				db.Short(given[len(given)-1]))
		}
	}
	return ""
}

// contradiction returns why the headers of a message are not given to the SDK: one is there twice, or names a version
// of the protocol that is not served yet, and the message names none. Nil if they are.
func contradiction(h http.Header, body []byte) *refusal {
	if why := Twice(h, headersOnce...); why != "" {
		return invalid(nil, "%s", why)
	}
	version := h.Get(versionHeader)
	if version <= firstStateless || bytes.Contains(body, []byte(sdk.MetaKeyProtocolVersion)) {
		return nil
	}
	var id json.RawMessage
	if all, ok := messagesIn(body); ok && len(all) == 1 {
		id = all[0].id
	}
	data, _ := json.Marshal(sdk.UnsupportedProtocolVersionData{Supported: versions, Requested: db.Short(version)})
	return &refusal{http.StatusBadRequest, id, &jsonrpc.Error{Code: sdk.CodeUnsupportedProtocolVersion, Data: data,
		Message: fmt.Sprintf("the version %s of the protocol is not served; the newest that is: %s", db.Short(version),
			versions[0])}}
}

// The form in which a client sends a value that a header cannot hold, such as one with letters beyond ASCII.
const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// decodedName returns the headers of a message with its name decoded, or why the name cannot be decoded. The SDK
// compares the name with the message and does not decode it.
func decodedName(h http.Header, in screened) (http.Header, *refusal) {
	encoded, begins := strings.CutPrefix(h.Get(nameHeader), encodedPrefix)
	encoded, ends := strings.CutSuffix(encoded, encodedSuffix)
	if !begins || !ends || h.Get(versionHeader) < firstStateless || len(in.messages) != 1 {
		return h, nil
	}
	id := in.messages[0].id
	name, err := base64.StdEncoding.Strict().DecodeString(encoded)
	switch {
	case err != nil:
		return nil, &refusal{http.StatusBadRequest, id, &jsonrpc.Error{Code: sdk.CodeHeaderMismatch, Message: fmt.Sprintf(
			"the header %s is %s: what stands between %s and %s is no Base64", nameHeader, db.Short(h.Get(nameHeader)),
			encodedPrefix, encodedSuffix)}}
	case len(name) == 0: // to the SDK it would be missing
		return nil, &refusal{http.StatusBadRequest, id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(
			"the header %s names nothing: name what the message is for", nameHeader)}}
	}
	h = h.Clone()
	h.Set(nameHeader, string(name))
	return h, nil
}

// versions are those of the protocol that are served, the newest first.
var versions = []string{firstStateless, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// statusOf returns the status of an error that answers one message.
func statusOf(version string) int {
	if version >= firstStateless {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// keptID reports whether the SDK answers an id as it is.
func keptID(id json.RawMessage) bool {
	switch kindOf(id) {
	case textKind:
		return true
	case numberKind:
		f, err := json.Number(id).Float64()
		return err == nil && f == math.Trunc(f) && math.Abs(f) < maxID
	}
	return false
}

// answerMessage is a message that answers another one with an error.
type answerMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   *jsonrpc.Error  `json:"error"`
}

func (f *refusal) message() answerMessage { return answerMessage{"2.0", f.id, f.err} }

// write answers with the refusal.
func (f *refusal) write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	return json.NewEncoder(w).Encode(f.message())
}

// idKey returns the same text for the same id, however it is written.
func idKey(id json.RawMessage) string {
	var value any
	_ = json.Unmarshal(id, &value) // it is JSON
	return fmt.Sprintf("%T %v", value, value)
}

// LastEvent is what the server ends an open answer to a message with, and why: an error that answers the message or,
// where there is none that waits, a comment. The stream of a session has no answers.
func LastEvent(body []byte, sentence string) string {
	all, ok := messagesIn(body)
	if !ok || len(all) != 1 || !all[0].isCall() {
		return ": " + sentence + "\n\n"
	}
	text, err := json.Marshal(invalid(all[0].id, "%s", sentence).message())
	if err != nil { // it has no value that JSON lacks
		return ""
	}
	return "event: message\ndata: " + string(text) + "\n\n"
}
