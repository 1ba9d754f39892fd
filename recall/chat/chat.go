// Package chat converts messages of the log to the messages of OpenAI's chat completions, OpenAI's Responses API and
// Anthropic's messages API, and reads such messages into drafts for the log.
//
// Each file uses those that are named before it:
//   - what all APIs share: object.go pending.go chat.go state.go signature.go
//   - reading: thought.go extra.go part.go cachecontrol.go responsesread.go openairead.go anthropicread.go answer.go
//     reasoningdetails.go
//   - writing: anthropic.go openai.go responses.go cachemarks.go
package chat

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
)

// Message is a message for OpenAI's chat completions with text only.
type Message struct {
	Role    string // system, user, assistant or tool
	Content string
	Calls   []Call // on an assistant's message
	CallID  string // on a tool result
}

// Call is an assistant's call of a tool.
type Call struct {
	ID, Name, Arguments string
}

// Counter counts the tokens of a text.
type Counter func(text string) int

// step is a message of a view together with the results of its calls, in a form that every provider accepts.
type step struct {
	role    recall.Role // system, user or assistant
	name    string
	model   string        // the model that wrote it; empty if unknown
	parts   []recall.Part // non-blank texts, images, reasoning, and calls with ids that are unique among all steps
	results []result      // results of the calls, in the order of the calls; in the last step some may be missing
}

func (s step) calls() (all []recall.Part) {
	for _, p := range s.parts {
		if p.Type == recall.ToolCall {
			all = append(all, p)
		}
	}
	return all
}

type result struct {
	callID, tool      string
	logged            PendingCall   // the call as it stands in the log
	content           []recall.Part // texts and images
	custom            bool          // the call's arguments are any text
	isError, received bool
	saysError         bool   // the content itself says that the call failed
	extra             string // as in recall.Part
}

// enveloped returns the content of a tool's result as its model reads it. Images have no envelope, as in Letta.
func enveloped(p recall.Part) []recall.Part {
	if p.Envelope == nil || len(p.Images) > 0 {
		return p.Returned()
	}
	return []recall.Part{{Type: recall.Text, Text: p.Envelope.Wrap(p.Text, p.IsError)}}
}

// failed begins the result of a call that failed, in formats that have no field for that.
const failed = "Error: "

// marked returns a result's content, marked if the call failed and nothing says so.
func (r result) marked() []recall.Part {
	if !r.isError || r.saysError || !r.received {
		return r.content
	}
	if first := r.content[0]; first.Type == recall.Text {
		first.Text = failed + first.Text
		return append([]recall.Part{first}, r.content[1:]...)
	}
	return append([]recall.Part{{Type: recall.Text, Text: strings.TrimSpace(failed)}}, r.content...)
}

// slot is the place for a result.
type slot struct{ step, result int }

// steps converts the messages of a view, without the system prompt. Calls that the conversation went on without get a
// result.
func steps(messages []recall.Message) []step {
	all := pairedSteps(messages)
	for i := range all {
		all[i].completeResults(i == len(all)-1)
	}
	return all
}

// pairedSteps converts messages. Results are late if their call is not among the messages; each late result becomes a
// message of its own, after all others. If the last step's calls still wait for results, late results stand before that
// step. Orphans are left out.
func pairedSteps(messages []recall.Message) []step {
	var all, late []step
	open, ids := recall.OpenCalls[slot]{}, map[string]bool{}
	for _, m := range messages {
		if m.Role == recall.Tool {
			for _, p := range m.Content {
				if at, ok := open.Answer(p.CallID); ok {
					r := &all[at.step].results[at.result]
					p.ReplaceText(shown(p), func(text string) string { return frame.Neutralize(text) })
					r.content, r.isError, r.received, r.extra = enveloped(p), p.IsError, true, p.Extra
					r.saysError = r.isError && (p.Envelope != nil || p.SaysFailed())
				} else if p.Type == recall.ToolReturn && !p.Orphan {
					late = append(late, lateResult(p))
				}
			}
			continue
		}
		s := newStep(m)
		if len(s.parts) > 0 {
			all, late = append(all, late...), nil
		}
		for i := range s.parts {
			if p := &s.parts[i]; p.Type == recall.ToolCall {
				logged := p.CallID
				open.Add(logged, slot{len(all), len(s.results)})
				p.CallID = uniqueID(p.CallID, m.Position, ids)
				p.Name = toolName(p.Name)
				s.results = append(s.results,
					result{callID: p.CallID, tool: p.Name, custom: p.Kind == recall.CustomCall,
						logged: PendingCall{logged, p.Name, m.Position}})
			}
		}
		if len(s.parts) > 0 {
			all = append(all, s)
		}
	}
	if n := len(all); n > 0 && slices.ContainsFunc(all[n-1].results, func(r result) bool { return !r.received }) {
		return slices.Insert(all, n-1, late...)
	}
	return append(all, late...)
}

// lateResult returns a message with the result of a call that has left the view.
func lateResult(p recall.Part) step {
	p.ReplaceText(shown(p), func(text string) string { return frame.Neutralize(text) })
	notice := fmt.Sprintf("%s A tool returned this for the call %s, which is not shown any more:", frame.System,
		frame.Neutralize(strconv.Quote(p.CallID)))
	if p.IsError {
		notice = fmt.Sprintf("%s A tool failed with this for the call %s, which is not shown any more:", frame.System,
			frame.Neutralize(strconv.Quote(p.CallID)))
	}
	content := enveloped(p)
	if !slices.ContainsFunc(content, isShown) {
		content = []recall.Part{{Type: recall.Text, Text: frame.EmptyResult}}
	}
	return step{role: recall.User, parts: append([]recall.Part{{Type: recall.Text, Text: notice}}, content...)}
}

func newStep(m recall.Message) step {
	s := step{role: m.Role}
	if m.Role != recall.System && m.Role != recall.Assistant {
		s.role = recall.User // this includes summaries
	}
	if m.Name != nil {
		s.name = frame.Neutralize(strings.TrimSpace(*m.Name))
	}
	if m.Model != nil {
		s.model = *m.Model
	}
	for _, p := range m.Content {
		if p.Type != recall.Text || strings.TrimSpace(p.Text) != "" {
			if m.Role == recall.System && strings.HasPrefix(p.Text, frame.System) { // it begins as a notice of Loci
				p.NoteAt = [2]int{0, len(frame.System)}
			}
			if m.Role == recall.User || m.Role == recall.System {
				p.Text = shown(p)
			}
			s.parts = append(s.parts, p)
		}
	}
	if len(s.parts) == 0 && m.Role == recall.User {
		s.parts = []recall.Part{{Type: recall.Text, Text: frame.EmptyMessage}}
	}
	return s
}

// completeResults fills in empty and missing results. In the last step missing results stay missing, because they may
// still come.
func (s *step) completeResults(last bool) {
	kept := s.results[:0]
	for _, r := range s.results {
		switch {
		case r.received && !slices.ContainsFunc(r.content, isShown):
			r.content = []recall.Part{{Type: recall.Text, Text: frame.EmptyResult}}
		case !r.received && last:
			continue
		case !r.received:
			r.content, r.isError = []recall.Part{{Type: recall.Text, Text: frame.NotRecorded}}, true
		}
		kept = append(kept, r)
	}
	s.results = kept
}

// isShown reports whether a part of a result is an image, or a text that is not blank.
func isShown(p recall.Part) bool { return p.Type == recall.Image || strings.TrimSpace(p.Text) != "" }

// idForm matches call ids that every provider accepts. OpenAI allows 40 characters; Anthropic allows only these
// characters.
var idForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)

// uniqueID returns a call's id. If a provider would refuse it, or it is taken, the returned id is made from the call's
// position.
func uniqueID(id string, position int, taken map[string]bool) string {
	if !idForm.MatchString(id) || taken[id] {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", position, id))
		id = "call_" + hex.EncodeToString(sum[:12])
	}
	taken[id] = true
	return id
}

// notInNames matches characters that a tool's name must not contain.
var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// maxNameChars bounds names of tools and speakers.
const maxNameChars = 64

// toolName changes a tool's name so that every provider accepts it.
func toolName(name string) string {
	name = cmp.Or(notInNames.ReplaceAllString(name, "_"), "_")
	return name[:min(len(name), maxNameChars)]
}

// shown returns a part's text for a model. Markers of Loci are neutralized, except in Loci's own notice.
func shown(p recall.Part) string {
	from, to := p.NoteAt[0], p.NoteAt[1]
	if to == 0 && p.Clip != nil {
		from, to = p.Clip.Shown, len(p.Text)
	}
	if from < 0 || from > to || to > len(p.Text) {
		return frame.Neutralize(p.Text)
	}
	return frame.Neutralize(p.Text[:from]) + p.Text[from:to] + frame.Neutralize(p.Text[to:])
}

// imageText stands in for an image that cannot be sent.
const imageText = "[image]"

// imageSource says where to load an image from.
type imageSource struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

// address returns the image's URL; a data URL if the source contains the image.
func (s imageSource) address() string {
	if s.Type == "base64" {
		return "data:" + s.MediaType + ";base64," + s.Data
	}
	return s.URL
}

// sourceOf parses an image's source. ok reports whether a provider can load the image from it.
func sourceOf(raw json.RawMessage) (s imageSource, ok bool) {
	if json.Unmarshal(raw, &s) != nil {
		return imageSource{}, false
	}
	inline := s.Type == "base64" && s.Data != "" && strings.HasPrefix(s.MediaType, "image/")
	return s, inline || s.Type == "url" && s.URL != ""
}

// item returns a part's item in the form that its provider accepts back. It drops null fields: some clients add them to
// items that have no such fields, and the provider refuses those.
func item(p recall.Part) json.RawMessage {
	p.Item = recall.CleanEscapes(p.Item) // older messages contain such escapes
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(p.Item), &fields) != nil {
		return json.RawMessage(p.Item)
	}
	before := len(fields)
	maps.DeleteFunc(fields, func(_ string, value json.RawMessage) bool { return string(value) == "null" })
	if len(fields) == before {
		return json.RawMessage(p.Item)
	}
	return Encode(fields)
}

// IsClaude reports whether a handle or name belongs to a model of Anthropic.
func IsClaude(model string) bool {
	model = strings.ToLower(model)
	return strings.Contains(model, "claude") || strings.HasPrefix(model, "anthropic/")
}

// Encode returns a value as compact JSON without escaping markup. It panics if the value cannot be written as JSON.
func Encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic("chat: what is sent to a model is not JSON: " + err.Error()) // raw parts were parsed before
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// ShownText returns the text of a part as a model reads it. Markers of Loci are neutralized, except in Loci's own
// notice.
func ShownText(p recall.Part) string { return shown(p) }

// ShownArguments returns the arguments of a call as an object. If the model wrote anything else, that becomes a field
// of an object.
func ShownArguments(p recall.Part) json.RawMessage { return arguments(p.Input) }
