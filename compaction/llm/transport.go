package llm

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

type contextKey int

// keyExchange is the key of the exchange in a request's context.
const keyExchange contextKey = iota

// exchange passes through what go-openai does not: the exact bytes of tool definitions, and the provider's original
// answer.
type exchange struct {
	tools  []byte
	status int
	words  string        // the words of an error
	least  int           // a lower bound of the request's tokens
	after  time.Duration // pause that the provider asked for; 0: none
}

// transport is go-openai's transport. It inserts the tools into the request byte for byte, because a provider's cache
// needs the same bytes. It also detects failures with status 200, which OpenRouter and LM Studio send.
type transport struct {
	next http.RoundTripper // nil means the default
	most int64             // most bytes of an answer; of a larger one, one byte more is passed on
}

// RoundTrip implements http.RoundTripper. It reads the answer's body into memory.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	x, ok := req.Context().Value(keyExchange).(*exchange)
	if !ok {
		x = &exchange{}
	}
	if err := withTools(req, x.tools); err != nil {
		return nil, err
	}
	answer, err := cmp.Or[http.RoundTripper](t.next, http.DefaultTransport).RoundTrip(req)
	if err != nil {
		*x = exchange{tools: x.tools, least: x.least}
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, t.most+1))
	if err = cmp.Or(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	if x.status, x.words = answer.StatusCode, ""; int64(len(body)) <= t.most {
		x.status = statusOf(answer.StatusCode, body)
	}
	if answer.StatusCode = x.status; x.status >= http.StatusBadRequest {
		x.words = words(body)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	return answer, nil
}

func withTools(req *http.Request, tools []byte) error {
	if len(tools) == 0 || req.Body == nil {
		return nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return err
	}
	body = slices.Concat([]byte(`{"tools":`), tools, []byte(","), bytes.TrimPrefix(body, []byte("{")))
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return nil
}

// statusOf returns an answer's status. If an answer with status 200 has an error and no choice, that is the error's
// code, or 400.
func statusOf(status int, body []byte) int {
	if status >= http.StatusBadRequest {
		return status
	}
	type failure struct {
		Code any `json:"code"`
	}
	var answer struct {
		Error   json.RawMessage `json:"error"`
		Choices []struct {
			Error   *failure        `json:"error"`
			Message json.RawMessage `json:"message"`
		} `json:"choices"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return status
	}
	var found *failure
	switch {
	case len(answer.Choices) > 0:
		found = answer.Choices[0].Error
	case len(answer.Error) > 0 && string(answer.Error) != "null":
		found = &failure{}
		_ = json.Unmarshal(answer.Error, found) // an error that is only a text has no code
	}
	if found == nil {
		return status
	}
	if code, ok := found.Code.(float64); ok && code >= http.StatusBadRequest && code < 600 {
		return int(code)
	}
	return http.StatusBadRequest
}

// maxWords bounds the bytes of an error that are matched, because the request itself may follow.
const maxWords = 8 << 10

// words returns the texts and numbers in an error's JSON, each behind its key. An error that is not JSON is returned as
// its text.
func words(body []byte) string {
	var value any
	text := strings.ToValidUTF8(string(body), "\uFFFD")
	if json.Unmarshal(body, &value) == nil {
		var b strings.Builder
		say(&b, "", value)
		text = cmp.Or(b.String(), text)
	}
	if len(text) > maxWords {
		text = text[:maxWords]
		for !utf8.ValidString(text) {
			text = text[:len(text)-1]
		}
	}
	return text
}

func say(b *strings.Builder, key string, value any) {
	switch v := value.(type) {
	case string:
		b.WriteString(key + ": " + v + "\n")
	case float64:
		b.WriteString(key + ": " + strconv.FormatFloat(v, 'f', -1, 64) + "\n")
	case []any:
		for _, item := range v {
			say(b, key, item)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if name != "input" { // "input" repeats the request
				say(b, name, v[name])
			}
		}
	}
}
