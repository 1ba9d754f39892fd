package mcp

import (
	"bytes"
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
	"resources/subscribe", Listen, "resources/unsubscribe", "notifications/cancelled", "notifications/initialized",
	"notifications/roots/list_changed", "notifications/progress"}

// maxID bounds the numbers that are ids: the SDK reads them as floats, which have each whole number below it.
const maxID = 1 << 53

// message is what is looked at of a message before the SDK reads it.
type message struct {
	raw    json.RawMessage
	method string
	id     json.RawMessage // nil if it has none
	params json.RawMessage
}

// isCall reports whether the message waits for an answer.
func (m message) isCall() bool { return m.method != "" && len(m.id) > 0 && string(m.id) != "null" }

// messagesIn returns the messages of a body: one, or those of a batch. False if it is neither.
func messagesIn(body []byte) (all []message, ok bool) {
	var raw []json.RawMessage
	switch body = bytes.TrimSpace(body); {
	case bytes.HasPrefix(body, []byte("{")):
		raw = []json.RawMessage{body}
	case json.Unmarshal(body, &raw) != nil || raw == nil:
		return nil, false
	}
	for _, one := range raw {
		var fields map[string]json.RawMessage
		if json.Unmarshal(one, &fields) != nil {
			return nil, false
		}
		m := message{raw: one, id: fields["id"], params: fields["params"]}
		_ = json.Unmarshal(fields["method"], &m.method) // the SDK refuses a method that is no text
		all = append(all, m)
	}
	return all, true
}

// refusal is the answer to a body that the SDK would answer otherwise than JSON-RPC says.
type refusal struct {
	status int
	id     json.RawMessage // nil is null
	err    *jsonrpc.Error
}

// refused returns why a body of a version of the protocol is not given to the SDK; nil if it is. fault is that of
// Options.
func refused(body []byte, version string, fault func(place string, value []byte) string) *refusal {
	invalid := func(format string, args ...any) *refusal {
		return &refusal{http.StatusBadRequest, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest,
			Message: fmt.Sprintf(format, args...)}}
	}
	all, ok := messagesIn(body)
	if !ok {
		return invalid("a message is a JSON object")
	}
	seen := map[string]bool{}
	for _, m := range all {
		if !m.isCall() {
			continue
		}
		if !keptID(m.id) {
			return invalid("the id %s is not answered as it is: an id is a text, or a whole number of less than 2^53",
				db.Short(string(m.id)))
		}
		if seen[string(m.id)] {
			return invalid("two messages of the batch have the id %s", db.Short(string(m.id)))
		}
		seen[string(m.id)] = true
	}
	batch := bytes.HasPrefix(bytes.TrimSpace(body), []byte("["))
	for _, m := range all {
		why := fault("", m.raw)
		if m.method == callTool && strings.HasPrefix(why, argumentsPlace+".") {
			why = "" // the result of the call says it to the model
		}
		if why == "" && m.isCall() {
			why = wrongParams(m.method, m.params)
		}
		switch {
		case why == "":
		case batch:
			return invalid("%s; nothing of the batch was done", why)
		case !m.isCall() || !strings.HasPrefix(why, "params"):
			return invalid("%s", why)
		default:
			return &refusal{statusOf(version), m.id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: why}}
		}
	}
	if version >= firstStateless {
		return nil
	}
	unknown := slices.IndexFunc(all, func(m message) bool { return m.isCall() && !slices.Contains(methods, m.method) })
	switch {
	case unknown < 0:
		return nil
	case batch:
		return invalid("there is no method %s; nothing of the batch was done", db.Short(all[unknown].method))
	}
	return &refusal{http.StatusOK, all[unknown].id, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound,
		Message: "there is no method " + db.Short(all[unknown].method)}}
}

// Refused returns the answer to a message on a stream, which the SDK would answer in words of its own; nil if there is
// none.
func Refused(message []byte) []byte {
	why := refused(message, "", func(string, []byte) string { return "" })
	if why == nil {
		return nil
	}
	answer, _ := json.Marshal(why.message()) // it has no value that JSON lacks
	return append(answer, '\n')
}

// contradiction returns why the headers of a message are not given to the SDK: one is there twice, or names a version
// of the protocol that is not served yet, and the message names none. Nil if they are.
func contradiction(h http.Header, body []byte) *refusal {
	for _, name := range []string{sessionHeader, versionHeader, MethodHeader, nameHeader} {
		if given := h.Values(name); len(slices.Compact(slices.Clone(given))) > 1 {
			return &refusal{http.StatusBadRequest, nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf(
				"the header %s is there with %s and with %s: send it once", name, db.Short(given[0]),
				db.Short(given[len(given)-1]))}}
		}
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

// versions are those of the protocol that are served, the newest first.
var versions = []string{firstStateless, "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// statusOf returns the status of an error that answers one message.
func statusOf(version string) int {
	if version >= firstStateless {
		return http.StatusBadRequest
	}
	return http.StatusOK
}

// keptID reports whether the SDK answers an id as it is. One that is no text and no number it refuses.
func keptID(id json.RawMessage) bool {
	var n json.Number
	if id[0] == '"' || json.Unmarshal(id, &n) != nil {
		return true
	}
	f, err := n.Float64()
	return err == nil && f == math.Trunc(f) && math.Abs(f) < maxID
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
