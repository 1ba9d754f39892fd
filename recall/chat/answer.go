package chat

import (
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/recall"
)

// ReadAnswer reads what a model answered, in a field, as its provider returned it: a chat completion of OpenAI's, with
// choices; a response of OpenAI's Responses API, with output; a message of Anthropic's; or the message alone, in the
// form of one of these. An answer without content is an empty text. at is the place of the message.
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
		d.Content, at = readAnswer(message.ofAssistant()), message.At
	case answer.Has("output"):
		d.Content = answer.readOutput()
	case answer.Has("role"):
		d.Content = readAnswer(answer)
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

// IsCut reports whether the answer in a field, of one of the forms of ReadAnswer, ended for its length.
func (i Object) IsCut(name string) bool {
	answer := i.Object(name)
	if !answer.Has("choices") {
		return answer.Text("stop_reason") == "max_tokens" || answer.Text("status") == "incomplete"
	}
	choices := answer.Items("choices", "a list of choices")
	return len(choices) > 0 && choices[0].Text("finish_reason") == "length"
}

// IsEmpty reports whether an answer has neither a text nor a call.
func IsEmpty(answer []recall.Part) bool {
	return !slices.ContainsFunc(answer, func(p recall.Part) bool {
		return p.Type == recall.ToolCall || p.Type != recall.Reasoning && p.Type != recall.RedactedReasoning &&
			(p.Type != recall.Text || p.Text != "")
	})
}

// CutOff makes an answer that ended before it was whole one that can be sent again: it drops the last call if its
// arguments are no JSON, and adds a text that says what happened if there is neither a text nor a call then.
func CutOff(answer []recall.Part) []recall.Part {
	why := "[This answer was cut off before it was complete.]"
	if last := len(answer) - 1; last >= 0 && answer[last].Type == recall.ToolCall &&
		!json.Valid([]byte(answer[last].Input)) {
		why = "[This answer was cut off within a call of " + answer[last].Name + ", which was not made.]"
		answer = answer[:last:last]
	}
	if IsEmpty(answer) {
		answer = append(answer, recall.Part{Type: recall.Text, Text: why})
	}
	return answer
}

// NameCalls gives the calls of an answer ids that are unique in it: newID returns one for the call at an index that has
// none, or that of an earlier call.
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

// choice returns the message of the first choice of a chat completion.
func (i Object) choice() Object {
	choices := i.Items("choices", "a list of choices")
	if len(choices) == 0 {
		i.Refuse("choices", "expected at least one, with the message that the model answered")
		return Object{problem: i.problem}
	}
	return choices[0].Object("message")
}

// ofAssistant refuses a message that names another role than assistant.
func (i Object) ofAssistant() Object {
	if i.Has("role") {
		i.OneOf("role", "assistant")
	}
	return i
}

// readOutput reads the items of a response.
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
			all = append(all, readAnswer(m.ofAssistant())...)
		default:
			m.Refuse("type", "expected message, function_call, reasoning, or another item that a model writes")
		}
	}
	return all
}

// usageCounts are the counts of a prompt in a provider's usage: of OpenAI's chat completions, of Letta, of OpenAI's
// Responses API (input_tokens alone), and of Anthropic, whose input_tokens are without those that it read from or wrote
// to its cache.
var usageCounts = []string{"prompt_tokens", "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"}

// PromptTokens returns a provider's count of a prompt, of the usage in a field; 0 if it has none. It refuses counts
// that are no numbers of tokens.
func (i Object) PromptTokens(name string) int {
	if !i.Has(name) {
		return 0
	}
	of := i.Object(name)
	counts := map[string]float64{}
	for _, count := range usageCounts {
		var n float64
		if of.Has(count) && (json.Unmarshal(of.fields[count], &n) != nil || n < 0 || n > maxTokens) {
			of.Refuse(count, "expected a number of 0 to 2147483647")
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
