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

// methods are the methods that are served. The SDK answers an unknown method in older protocol versions with plain
// text, and serves logging/setLevel although nothing is logged to clients.
var methods = []string{"completion/complete", "server/discover", "initialize", "ping", "prompts/list", "prompts/get",
	"tools/list", "tools/call", "resources/list", "resources/templates/list", "resources/read",
	"resources/subscribe", Listen, "resources/unsubscribe", cancelled, "notifications/initialized",
	"notifications/roots/list_changed", "notifications/progress"}

// maxID bounds numeric ids: the SDK reads them as floats, which represent all whole numbers below 2^53.
const maxID = 1 << 53

// message holds the parts of a message that are checked before the SDK reads it.
type message struct {
	raw    json.RawMessage
	fields map[string]json.RawMessage
	method string
	id     json.RawMessage // nil if the message has none
	params json.RawMessage
}

// isCall reports whether the message expects an answer.
func (m message) isCall() bool { return m.method != "" && len(m.id) > 0 }

// isUnknown reports whether the message is a notification with an unknown method. The protocol says to ignore it.
func (m message) isUnknown() bool {
	return len(m.id) == 0 && m.method != "" && !slices.Contains(methods, m.method)
}

// version returns the protocol version that the message names; empty if it names none.
func (m message) version() string {
	var params struct {
		Meta map[string]json.RawMessage `json:"_meta"`
	}
	version := ""
	if json.Unmarshal(m.params, &params) == nil {
		_ = json.Unmarshal(params.Meta[sdk.MetaKeyProtocolVersion], &version) // the SDK refuses a version that is no text
	}
	return version
}

// textOf decodes a JSON string; it returns "" for any other value.
func textOf(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

// wrong says in a sentence why a message breaks JSON-RPC; empty if it does not.
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

// notifications is the prefix of the methods that get no answer.
const notifications = "notifications/"

// messagesIn returns the messages of a body: a single one, or a batch. It returns false if the body is neither.
func messagesIn(body []byte) (all []message, ok bool) {
	var raw []json.RawMessage
	switch body = bytes.TrimSpace(body); {
	case bytes.HasPrefix(body, []byte("{")):
		raw = []json.RawMessage{body}
	case json.Unmarshal(body, &raw) != nil || len(raw) == 0:
		return nil, false
	}
	for _, item := range raw {
		var fields map[string]json.RawMessage
		if json.Unmarshal(item, &fields) != nil || fields == nil {
			return nil, false
		}
		all = append(all, message{raw: item, fields: fields, method: textOf(fields["method"]), id: fields["id"],
			params: fields["params"]})
	}
	return all, true
}

// refusal is our answer to a body that the SDK would answer against the rules of JSON-RPC.
type refusal struct {
	status int
	id     json.RawMessage // nil is sent as null
	err    *jsonrpc.Error
}

// invalid returns the refusal of a message that breaks the protocol. An invalid id is left out.
func invalid(id json.RawMessage, format string, args ...any) *refusal {
	if id != nil && !keptID(id) {
		id = nil
	}
	return &refusal{http.StatusBadRequest, id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
		Message: fmt.Sprintf(format, args...)}}
}

// screened holds the messages of a body for the SDK: all except unknown notifications.
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

// lines returns the messages as lines. A batch's messages that expect no answer get lines of their own, because the SDK
// would wait for their answers.
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

// maxBatch bounds the messages in a batch: all run at the same time, and all answers are held in memory.
const maxBatch = 50

// firstWithoutBatches is the first protocol version without batches.
const firstWithoutBatches = "2025-06-18"

// screen returns the messages of a body for the SDK, or the refusal of the whole body. version is the protocol version,
// and fault is as in Options.
func screen(body []byte, version string, fault func(place string, value []byte) string) (screened, *refusal) {
	all, ok := messagesIn(body)
	if !ok {
		return screened{}, invalid(nil, "a message is a JSON object")
	}
	accepted := screened{batch: bytes.HasPrefix(bytes.TrimSpace(body), []byte("["))}
	if len(all) > maxBatch {
		return accepted, invalid(nil, "the batch has %d messages; at most %d are taken at once", len(all), maxBatch)
	}
	ids := map[string]bool{}
	for _, m := range all {
		refused := m.refused(version, fault)
		switch {
		case refused != nil && accepted.batch:
			return accepted, invalid(nil, "%s; nothing of the batch was done", refused.err.Message)
		case refused != nil:
			return accepted, refused
		case accepted.batch && max(version, m.version()) >= firstWithoutBatches:
			return accepted, invalid(nil, "the versions of the protocol from %s on have no batches: send each message alone",
				firstWithoutBatches)
		case m.isCall() && ids[idKey(m.id)]:
			return accepted, invalid(nil, "two messages of the batch have the id %s", db.Short(string(m.id)))
		case m.isCall():
			ids[idKey(m.id)] = true
		case m.isUnknown():
			continue
		}
		accepted.messages = append(accepted.messages, m)
	}
	return accepted, nil
}

// refused says why the SDK must not get a message; nil if it may.
func (m message) refused(version string, fault func(place string, value []byte) string) *refusal {
	if sentence := m.wrong(); sentence != "" {
		return invalid(m.id, "%s", sentence)
	}
	sentence := fault("", m.raw)
	if m.method == callTool && strings.HasPrefix(sentence, argumentsPlace+".") {
		sentence = "" // the call's result tells it to the model
	}
	if sentence == "" && m.isCall() {
		sentence = wrongParams(m.method, m.params)
	}
	switch {
	case sentence != "" && m.isCall() && strings.HasPrefix(sentence, "params"):
		return &refusal{statusOf(version), m.id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: sentence}}
	case sentence != "":
		return invalid(nil, "%s", sentence)
	case version < firstStateless && m.isCall() && !slices.Contains(methods, m.method):
		return &refusal{http.StatusOK, m.id, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
			Message: "there is no method " + db.Short(m.method)}}
	}
	return nil
}

// headersOnce are the headers that may have only one value.
var headersOnce = []string{sessionHeader, versionHeader, MethodHeader, nameHeader, lastEventHeader}

// Twice returns a sentence about the first header among names that has two different values; empty if there is none.
func Twice(h http.Header, names ...string) string {
	for _, name := range names {
		if values := h.Values(name); len(slices.Compact(slices.Clone(values))) > 1 {
			return fmt.Sprintf("the header %s has the values %s and %s: send it once", name, db.Short(values[0]),
				db.Short(values[len(values)-1]))
		}
	}
	return ""
}

// contradiction returns the refusal of a message by its headers; nil if they are fine. A header may have two values, or
// name a protocol version that is not served yet while the message itself names none.
func contradiction(h http.Header, body []byte) *refusal {
	if twice := Twice(h, headersOnce...); twice != "" {
		return invalid(nil, "%s", twice)
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

// Clients use this form to encode values that headers cannot hold, such as letters beyond ASCII.
const (
	encodedPrefix = "=?base64?"
	encodedSuffix = "?="
)

// decodedName returns a message's headers with the name header decoded, or a refusal if decoding fails. The SDK
// compares this header with the message, but does not decode it.
func decodedName(h http.Header, accepted screened) (http.Header, *refusal) {
	encoded, begins := strings.CutPrefix(h.Get(nameHeader), encodedPrefix)
	encoded, closes := strings.CutSuffix(encoded, encodedSuffix)
	if !begins || !closes || h.Get(versionHeader) < firstStateless || len(accepted.messages) != 1 {
		return h, nil
	}
	id := accepted.messages[0].id
	name, err := base64.StdEncoding.Strict().DecodeString(encoded)
	switch {
	case err != nil:
		return nil, &refusal{http.StatusBadRequest, id, &jsonrpc.Error{Code: sdk.CodeHeaderMismatch, Message: fmt.Sprintf(
			"the header %s is %s: what stands between %s and %s is no Base64", nameHeader, db.Short(h.Get(nameHeader)),
			encodedPrefix, encodedSuffix)}}
	case len(name) == 0: // the SDK would treat it as missing
		return nil, &refusal{http.StatusBadRequest, id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(
			"the header %s names nothing: name what the message is for", nameHeader)}}
	}
	h = h.Clone()
	h.Set(nameHeader, string(name))
	return h, nil
}

// versions are the protocol versions that are served, newest first.
var versions = []string{firstStateless, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// statusOf returns the HTTP status for an error that answers a single message.
func statusOf(version string) int {
	if version >= firstStateless {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// keptID reports whether the SDK returns an id unchanged in its answer.
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

// answerMessage is an answer with an error.
type answerMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   *jsonrpc.Error  `json:"error"`
}

func (f *refusal) message() answerMessage { return answerMessage{"2.0", f.id, f.err} }

// write sends the refusal as the answer.
func (f *refusal) write(w http.ResponseWriter) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.status)
	return json.NewEncoder(w).Encode(f.message())
}

// idKey returns the same text for equal ids, however they are written.
func idKey(id json.RawMessage) string {
	var value any
	_ = json.Unmarshal(id, &value) // the id is valid JSON
	return fmt.Sprintf("%T %v", value, value)
}

// LastEvent returns what ends an open answer to a message early, and says why: an error that answers the message or, if
// no message waits for an answer, a comment. The stream of a session carries no answers.
func LastEvent(body []byte, sentence string) string {
	all, ok := messagesIn(body)
	if !ok || len(all) != 1 || !all[0].isCall() {
		return ": " + sentence + "\n\n"
	}
	text, err := json.Marshal(invalid(all[0].id, "%s", sentence).message())
	if err != nil { // all its values can be marshaled
		return ""
	}
	return "event: message\ndata: " + string(text) + "\n\n"
}
