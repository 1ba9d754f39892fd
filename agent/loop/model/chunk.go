package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"strings"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// chunk is what is read of an event of a stream, or of an answer that is not streamed. A field of another form than
// those that are known is empty.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Object  text            `json:"object"` // error: the event is one

	Base     lenient[baseResp] `json:"base_resp"`
	Feedback lenient[feedback] `json:"promptFeedback"`
}

// feedback is where Gemini says that it blocked a prompt.
type feedback struct {
	Reason text `json:"blockReason"`
}

// lenient is a value that is empty if it has another form.
type lenient[T any] struct{ of T }

// UnmarshalJSON implements json.Unmarshaler.
func (l *lenient[T]) UnmarshalJSON(raw []byte) error {
	var of T
	if json.Unmarshal(raw, &of) == nil {
		l.of = of
	}
	return nil
}

type choice struct {
	Index   int             `json:"index"`
	Finish  text            `json:"finish_reason"`
	Error   json.RawMessage `json:"error"`
	Usage   json.RawMessage `json:"usage"` // of Moonshot
	Delta   delta           `json:"delta"`
	Message *delta          `json:"message"` // of an answer that is not streamed
}

// delta is what an event adds to an answer.
type delta struct {
	Content   said            `json:"content"`
	Refusal   text            `json:"refusal"`
	Thought   text            `json:"reasoning_content"`
	Reasoning text            `json:"reasoning"` // of some endpoints an object
	Calls     []piece         `json:"tool_calls"`
	Details   json.RawMessage `json:"reasoning_details"` // of OpenRouter
	Function  *function       `json:"function_call"`     // the older form of the only call
}

// piece is a piece of a call, or a whole one.
type piece struct {
	Index    *int            `json:"index"`
	ID       text            `json:"id"`
	Function function        `json:"function"`
	Extra    json.RawMessage `json:"extra_content"` // of Gemini
}

type function struct {
	Name      text      `json:"name"`
	Arguments arguments `json:"arguments"`
}

// text is a JSON text; empty for any other JSON.
type text string

// UnmarshalJSON implements json.Unmarshaler.
func (t *text) UnmarshalJSON(raw []byte) error {
	*t = text(textOf(raw))
	return nil
}

// textOf returns a JSON text, empty for any other JSON.
func textOf(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

// isSet reports whether a field is there; null is not.
func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// arguments are those of a call, or a piece of them: a text, or, from some servers, the object itself.
type arguments string

// UnmarshalJSON implements json.Unmarshaler.
func (a *arguments) UnmarshalJSON(raw []byte) error {
	switch raw[0] {
	case '"':
		*a = arguments(textOf(raw))
	case '{', '[':
		var compact bytes.Buffer
		_ = json.Compact(&compact, raw) // it was parsed before
		*a = arguments(compact.String())
	}
	return nil
}

// said is the content of a message: a text, or parts of it.
type said []saidPart

type saidPart struct {
	kind recall.PartType // Text or Reasoning
	text string
}

// UnmarshalJSON implements json.Unmarshaler.
func (s *said) UnmarshalJSON(raw []byte) error {
	var parts []json.RawMessage
	switch raw[0] {
	case '[':
		_ = json.Unmarshal(raw, &parts) // it was parsed before
	case '"', '{':
		parts = []json.RawMessage{raw}
	}
	for _, p := range parts {
		*s = append(*s, partOf(p))
	}
	return nil
}

// partOf reads a part of a content. Mistral's thoughts are parts whose texts are a list again.
func partOf(raw json.RawMessage) saidPart {
	var p struct {
		Type     text `json:"type"`
		Text     text `json:"text"`
		Refusal  text `json:"refusal"`
		Thinking said `json:"thinking"`
	}
	if json.Unmarshal(raw, &p) != nil {
		return saidPart{recall.Text, textOf(raw)}
	}
	part := saidPart{recall.Text, string(cmp.Or(p.Text, p.Refusal))}
	for _, t := range p.Thinking {
		part.text += t.text
	}
	if p.Type == "thinking" || p.Type == "reasoning" {
		part.kind = recall.Reasoning
	}
	return part
}

// maxTokens is the largest count of tokens that is possible.
const maxTokens = math.MaxInt32

// tokens is a provider's count. One that is negative, no whole number or too large is an error.
type tokens int

// UnmarshalJSON implements json.Unmarshaler.
func (t *tokens) UnmarshalJSON(raw []byte) error {
	var n float64
	if err := json.Unmarshal(raw, &n); err != nil {
		return err
	}
	if n < 0 || n > maxTokens || n != math.Trunc(n) {
		return errImpossible
	}
	*t = tokens(n)
	return nil
}

// openAIUsage reads a provider's counts; false if it has none, or if one is impossible.
func openAIUsage(raw json.RawMessage) (Usage, bool) {
	var u struct {
		Prompt     tokens `json:"prompt_tokens"`
		Completion tokens `json:"completion_tokens"`
		OfPrompt   struct {
			Cached tokens `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
		OfCompletion struct {
			Reasoning tokens `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	if !isSet(raw) || json.Unmarshal(raw, &u) != nil {
		return Usage{}, false
	}
	return Usage{Prompt: int(u.Prompt), Completion: int(u.Completion), Cached: int(u.OfPrompt.Cached),
		Reasoning: int(u.OfCompletion.Reasoning)}, true
}

// finishes are the reasons for the end of an answer that mean more than that it is whole, of several servers.
var finishes = map[string]string{"length": Length, "max_tokens": Length, "model_length": Length,
	"error": broke, "abort": broke, "cancelled": broke}

// broke is the reason of servers that broke an answer off.
const broke = "broke"

// finishOf returns the reason for which an answer ended.
func finishOf(reason string) string {
	if chat.IsFiltered(reason) {
		return Refused
	}
	return cmp.Or(finishes[strings.ToLower(reason)], Stop)
}
