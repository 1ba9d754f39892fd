package chat

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
)

// ReadAnswer reads the answer of a model in the named field, as its provider returned it: a chat completion of OpenAI
// with one choice, a response of OpenAI's Responses API with output, a message of Anthropic, or only the message in one
// of these forms. Thoughts in tags become reasoning. Calls may lack ids. An answer without content becomes an empty
// text. at is the place of the message in the request.
func (i Object) ReadAnswer(name string) (d recall.Draft, at string) {
	answer := i.Object(name)
	if i.Failed() {
		return d, answer.At
	}
	at = answer.At
	switch {
	case answer.Has("error") && !answer.Has("role"):
		answer.Refuse("error", "expected an answer of the model, not an error of its provider")
	case answer.Has("choices"):
		message := answer.choice()
		d.Content, at = readAnswer(message.ofAssistant(), loose), message.At
	case answer.Has("output"):
		d.Content = answer.readOutput()
	case answer.Has("role"):
		d.Content = readAnswer(answer, loose)
		if answer.OneOf("role", "assistant") == "" {
			return d, at
		}
	default:
		i.Refuse(name, "expected what the provider returned: choices (chat completions), output (Responses), or role "+
			"and content (Anthropic's messages)")
	}
	d.Role, d.Model = recall.Assistant, answer.Optional("model")
	if len(d.Content) == 0 {
		d.Content = []recall.Part{{Type: recall.Text}}
	}
	return d, at
}

// How an answer that is not whole ended.
const (
	Length   = "length"   // its length reached a limit
	Filtered = "filtered" // the provider stopped it
	Paused   = "paused"   // the model continues when it is asked again
)

// endings maps a provider's reason for the end of an answer to the ending.
var endings = map[string]string{"length": Length, "max_tokens": Length, "model_length": Length,
	"model_context_window_exceeded": Length, "max_output_tokens": Length, "pause_turn": Paused}

// filtered are the reasons by which several providers say that they stopped an answer.
var filtered = map[string]bool{"content_filter": true, "content-filter": true, "content_filtered": true,
	"refusal": true, "safety": true, "sensitive": true, "prohibited_content": true, "blocklist": true, "spii": true,
	"recitation": true, "image_safety": true, "guardrail_intervened": true}

// IsFiltered reports whether an answer ended because its provider stopped it. Gemini adds details behind a colon.
func IsFiltered(reason string) bool {
	kind, _, _ := strings.Cut(strings.ToLower(reason), ":")
	return filtered[strings.TrimSpace(kind)]
}

// Ending returns how the answer in the named field ended; empty if it is whole. It reads the forms of ReadAnswer.
func (i Object) Ending(name string) string {
	var a struct {
		Choices []struct {
			Reason any `json:"finish_reason"`
		} `json:"choices"`
		Reason  any `json:"stop_reason"`
		Status  any `json:"status"`
		Details struct {
			Reason any `json:"reason"`
		} `json:"incomplete_details"`
	}
	_ = json.Unmarshal(i.fields[name], &a) // ReadAnswer reports the error
	reason := a.Reason
	switch {
	case len(a.Choices) > 0:
		reason = a.Choices[0].Reason
	case a.Status == "incomplete":
		reason = cmp.Or(a.Details.Reason, any("max_output_tokens"))
	}
	text, _ := reason.(string)
	if IsFiltered(text) {
		return Filtered
	}
	return endings[text]
}

// thoughts are the types of parts that are no answer.
var thoughts = []recall.PartType{recall.Reasoning, recall.RedactedReasoning, recall.OmittedReasoning,
	recall.SummarizedReasoning}

// IsEmpty reports whether an answer contains neither a text nor a call.
func IsEmpty(answer []recall.Part) bool {
	return !slices.ContainsFunc(answer, func(p recall.Part) bool {
		return !slices.Contains(thoughts, p.Type) && (p.Type != recall.Text || p.Text != "")
	})
}

// CutOff changes an answer that was cut off so that it can be sent again. It drops the last call if its arguments are
// not JSON. If neither a text nor a call remains, it adds a text that says what happened.
func CutOff(answer []recall.Part) []recall.Part {
	why := frame.CutAnswer
	if last := len(answer) - 1; last >= 0 && answer[last].Type == recall.ToolCall &&
		!json.Valid([]byte(answer[last].Input)) {
		why = fmt.Sprintf(frame.CutCall, answer[last].Name)
		answer = answer[:last:last]
	}
	if IsEmpty(answer) {
		answer = slices.DeleteFunc(answer, func(p recall.Part) bool { return p.Type == recall.Text })
		answer = append(answer, recall.Part{Type: recall.Text, Text: why})
	}
	return answer
}

// NameCalls makes the ids of an answer's calls unique. A call without an id, or with the id of an earlier call, gets
// the id that newID returns for its index.
func NameCalls(answer []recall.Part, newID func(index int) string) {
	ids := map[string]bool{}
	for n := range answer {
		p := &answer[n]
		if p.Type != recall.ToolCall {
			continue
		}
		if p.CallID == "" || ids[p.CallID] {
			p.CallID = newID(n)
		}
		ids[p.CallID] = true
	}
}

// choice returns the message in a chat completion's only choice.
func (i Object) choice() Object {
	choices := i.Items("choices", "a list of choices")
	if len(choices) != 1 {
		i.Refuse("choices", fmt.Sprintf("expected one, with the message that the model answered. Got: %d. A conversation "+
			"goes on with one answer: ask for one, or send the one that you choose", len(choices)))
		return Object{problem: i.problem}
	}
	return choices[0].Object("message")
}

// ofAssistant refuses a message with a role other than assistant.
func (i Object) ofAssistant() Object {
	if i.Has("role") {
		i.OneOf("role", "assistant")
	}
	return i
}

// readOutput reads the items of a response's output.
func (i Object) readOutput() (all []recall.Part) {
	for _, m := range i.Items("output", "a list of items") {
		switch {
		case IsItem(m):
			if d := ReadItem(m); d.Role == recall.Assistant {
				all = append(all, d.Content...)
			} else {
				m.Refuse("type", "expected what the model wrote; send what tools returned as messages")
			}
		case m.kind() == "message":
			all = append(all, readAnswer(m.ofAssistant(), exact)...)
		default:
			m.Refuse("type", "expected message, function_call, reasoning, or another item that a model writes")
		}
	}
	return all
}

// usageCounts are the fields of a provider's usage that add up to a prompt's tokens: prompt_tokens of OpenAI's chat
// completions and of Letta, and input_tokens of OpenAI's Responses API and of Anthropic. Anthropic counts tokens that
// it read from or wrote to its cache in the two other fields.
var usageCounts = []string{"prompt_tokens", "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"}

// PromptTokens returns a provider's count of a prompt from the usage in the named field; 0 if there is none. It refuses
// values that are not counts of tokens.
func (i Object) PromptTokens(name string) int {
	if !i.Has(name) {
		return 0
	}
	usage := i.Object(name)
	counts := map[string]float64{}
	for _, count := range usageCounts {
		var n float64
		if usage.Has(count) && (json.Unmarshal(usage.fields[count], &n) != nil || n < 0 || n > maxTokens) {
			usage.Refuse(count, "expected a number of 0 to 2147483647")
			return 0
		}
		counts[count] = n
	}
	n := counts["prompt_tokens"]
	if n == 0 {
		n = counts["input_tokens"] + counts["cache_read_input_tokens"] + counts["cache_creation_input_tokens"]
	}
	return int(min(n, maxTokens))
}

const maxTokens = 1<<31 - 1

// Usage is what a provider counted for an answer, in tokens. Prompt includes CacheRead and CacheWrite.
type Usage struct{ Prompt, Completion, CacheRead, CacheWrite int }

// Usage returns a provider's counts from the usage in the named field. A count that is absent or impossible is 0.
func (i Object) Usage(name string) (u Usage) {
	type details struct {
		Read  float64 `json:"cached_tokens"`
		Write float64 `json:"cache_write_tokens"` // of OpenRouter
	}
	var raw struct {
		Completion float64 `json:"completion_tokens"`
		Output     float64 `json:"output_tokens"`
		Read       float64 `json:"cache_read_input_tokens"`
		Write      float64 `json:"cache_creation_input_tokens"`
		Hit        float64 `json:"prompt_cache_hit_tokens"` // of DeepSeek
		OfPrompt   details `json:"prompt_tokens_details"`
		OfInput    details `json:"input_tokens_details"`
	}
	if !i.Has(name) || json.Unmarshal(i.fields[name], &raw) != nil {
		return u
	}
	count := func(list ...float64) int { return int(min(max(0, slices.Max(list)), maxTokens)) }
	u.Prompt, u.Completion = i.PromptTokens(name), count(raw.Completion, raw.Output)
	u.CacheRead = count(raw.Read, raw.Hit, raw.OfPrompt.Read, raw.OfInput.Read)
	u.CacheWrite = count(raw.Write, raw.OfPrompt.Write, raw.OfInput.Write)
	return u
}
