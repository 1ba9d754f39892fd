package agent

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"github.com/loci-memory/loci/recall"
)

// turn is a message of a view as any provider takes it: its calls have ids of their own, and stand with their results.
type turn struct {
	role    recall.Role // system, user or assistant
	name    string
	model   string        // that wrote it, where that is known
	said    []recall.Part // texts that are not blank, images, reasoning
	calls   []recall.Part
	results []result // of calls, in their order; of the last turn some may be missing
}

// result is what a call returned.
type result struct {
	callID, tool, text string
	images             []json.RawMessage
	isError, is        bool
}

// notRecorded is the result of a call after which a conversation went on without one: providers refuse a call that has none.
const notRecorded = "The result of this call was not recorded."

// turnsOf makes turns of the messages of a view, the system prompt aside. Results go to the latest call of their id that has none, as the log
// pairs them; those of no call are left out.
func turnsOf(messages []recall.Message) []turn {
	var turns []turn
	type place struct{ turn, result int }
	open, ids := map[string]place{}, map[string]bool{}
	for _, m := range messages {
		if m.Role == recall.Tool {
			for _, p := range m.Content {
				if at, ok := open[p.CallID]; ok {
					r := &turns[at.turn].results[at.result]
					r.text, r.images, r.isError, r.is = p.Text, p.Images, p.IsError, true
					delete(open, p.CallID)
				}
			}
			continue
		}
		t := newTurn(m)
		for _, p := range m.Content {
			if p.Type == recall.ToolCall {
				open[p.CallID] = place{len(turns), len(t.calls)}
				p.CallID = uniqueID(p.CallID, m.Position, ids)
				p.Name = toolName(p.Name)
				t.calls, t.results = append(t.calls, p), append(t.results, result{callID: p.CallID, tool: p.Name})
			}
		}
		if len(t.said) > 0 || len(t.calls) > 0 {
			turns = append(turns, t)
		}
	}
	for i := range turns {
		turns[i].settle(i == len(turns)-1)
	}
	return turns
}

func newTurn(m recall.Message) turn {
	t := turn{role: m.Role}
	if m.Role != recall.System && m.Role != recall.Assistant {
		t.role = recall.User // what stands for messages that are not shown is told by the user, too
	}
	if m.Name != nil {
		t.name = strings.TrimSpace(*m.Name)
	}
	if m.Model != nil {
		t.model = *m.Model
	}
	for _, p := range m.Content {
		if p.Type != recall.ToolCall && (p.Type != recall.Text || strings.TrimSpace(p.Text) != "") {
			t.said = append(t.said, p)
		}
	}
	return t
}

// settle gives calls without a result one that says so. The last turn's may still come.
func (t *turn) settle(last bool) {
	kept := t.results[:0]
	for _, r := range t.results {
		switch {
		case r.is && strings.TrimSpace(r.text) == "" && len(r.images) == 0:
			r.text = "(no output)"
		case !r.is && last:
			continue
		case !r.is:
			r.text, r.isError = notRecorded, true
		}
		kept = append(kept, r)
	}
	t.results = kept
}

// idForm are the ids of calls that every provider takes (OpenAI: 40 characters; Anthropic: these).
var idForm = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,40}$`)

// uniqueID is a call's id: the one it has, or, where that is not one for every provider or is taken, one of its place.
func uniqueID(id string, position int, taken map[string]bool) string {
	if !idForm.MatchString(id) || taken[id] {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", position, id))
		id = "call_" + hex.EncodeToString(sum[:12])
	}
	taken[id] = true
	return id
}

// notInNames is what the names of tools and of speakers cannot have.
var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// maxNameChars is how long the names of tools and speakers may be.
const maxNameChars = 64

// toolName is the name of a tool as every provider takes it.
func toolName(name string) string {
	name = cmp.Or(notInNames.ReplaceAllString(name, "_"), "_")
	return name[:min(len(name), maxNameChars)]
}

// arguments are those of a call as an object; what is none, as a model may write it, is kept in one.
func arguments(input string) json.RawMessage {
	var object map[string]json.RawMessage
	if strings.TrimSpace(input) == "" {
		return json.RawMessage(`{}`)
	}
	if json.Unmarshal([]byte(input), &object) == nil && object != nil {
		return compact(json.RawMessage(input))
	}
	return encoded(map[string]string{"arguments": input})
}

// source is where an image is.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"`
	URL       string `json:"url,omitempty"`
	Detail    string `json:"detail,omitempty"`
}

// imageText stands for an image where none can be sent.
const imageText = "[image]"

// sourceOf reads an image's source; ok is whether a provider can read the image by it.
func sourceOf(raw json.RawMessage) (s source, ok bool) {
	if json.Unmarshal(raw, &s) != nil {
		return source{}, false
	}
	return s, s.Type == "url" && s.URL != "" || s.Type == "base64" && s.Data != "" && strings.HasPrefix(s.MediaType, "image/")
}
