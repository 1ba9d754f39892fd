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

// chunk has the fields that are read of a stream's event, or of an answer without a stream. A field of an unknown form
// reads as empty.
type chunk struct {
	Choices []choice        `json:"choices"`
	Usage   json.RawMessage `json:"usage"`
	Error   json.RawMessage `json:"error"`
	Object  text            `json:"object"` // "error" marks the event as an error

	Base     lenient[baseResp] `json:"base_resp"`
	Feedback lenient[feedback] `json:"promptFeedback"`
}

// feedback is where Gemini says that it blocked a prompt.
type feedback struct {
	Reason text `json:"blockReason"`
}

// lenient is a value that reads as empty if it has another form.
type lenient[T any] struct{ of T }

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
	Usage   json.RawMessage `json:"usage"` // Moonshot's place for it
	Delta   delta           `json:"delta"`
	Message *delta          `json:"message"` // in an answer without a stream
}

// delta is the part of an event that extends an answer.
type delta struct {
	Content   said            `json:"content"`
	Refusal   text            `json:"refusal"`
	Thought   text            `json:"reasoning_content"`
	Reasoning text            `json:"reasoning"` // an object at some endpoints
	Calls     []piece         `json:"tool_calls"`
	Details   json.RawMessage `json:"reasoning_details"` // OpenRouter's
	Function  *function       `json:"function_call"`     // the older form, for a single call
}

// piece is a piece of a call, or a whole call.
type piece struct {
	Index    *int            `json:"index"`
	ID       text            `json:"id"`
	Function function        `json:"function"`
	Extra    json.RawMessage `json:"extra_content"` // Gemini's
}

type function struct {
	Name      text      `json:"name"`
	Arguments arguments `json:"arguments"`
}

// text is a JSON text; any other JSON reads as empty.
type text string

func (t *text) UnmarshalJSON(raw []byte) error {
	*t = text(textOf(raw))
	return nil
}

// textOf returns a JSON text; empty for any other JSON.
func textOf(raw json.RawMessage) (text string) {
	_ = json.Unmarshal(raw, &text)
	return text
}

// isSet reports whether a field is there and not null.
func isSet(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

// arguments are a call's arguments, or a piece of them: a text or, from some servers, the object itself.
type arguments string

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

// said is a message's content: a text, or parts.
type said []saidPart

type saidPart struct {
	kind recall.PartType // Text or Reasoning
	text string
}

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

// partOf reads a part of a content. Mistral's thoughts are parts with lists of texts.
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

// maxTokens is the largest possible count of tokens.
const maxTokens = math.MaxInt32

// tokens is a provider's count. A negative, fractional or too large number is an error.
type tokens int

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

// openAIUsage reads a provider's counts. It returns false if there are none, or if one is impossible.
func openAIUsage(raw json.RawMessage) (Usage, bool) {
	var u struct {
		Prompt     tokens `json:"prompt_tokens"`
		Completion tokens `json:"completion_tokens"`
		OfPrompt   struct {
			Cached     tokens `json:"cached_tokens"`
			CacheWrite tokens `json:"cache_write_tokens"` // of OpenRouter
		} `json:"prompt_tokens_details"`
		Hit          tokens `json:"prompt_cache_hit_tokens"` // of DeepSeek
		OfCompletion struct {
			Reasoning tokens `json:"reasoning_tokens"`
		} `json:"completion_tokens_details"`
	}
	if !isSet(raw) || json.Unmarshal(raw, &u) != nil {
		return Usage{}, false
	}
	return Usage{Prompt: int(u.Prompt), Completion: int(u.Completion), Cached: int(max(u.OfPrompt.Cached, u.Hit)),
		CacheWrite: int(u.OfPrompt.CacheWrite), Reasoning: int(u.OfCompletion.Reasoning)}, true
}

// finishes maps several servers' finish reasons, if they mean more than that the answer is whole.
var finishes = map[string]string{"length": Length, "max_tokens": Length, "model_length": Length,
	"error": broke, "abort": broke, "cancelled": broke}

// broke is the reason if a server broke off an answer.
const broke = "broke"

// finishOf returns the reason for which an answer ended.
func finishOf(reason string) string {
	if chat.IsFiltered(reason) {
		return Refused
	}
	return cmp.Or(finishes[strings.ToLower(reason)], Stop)
}
