package letta

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// InitialMessage is one of the messages with which a new agent's default conversation begins.
type InitialMessage struct {
	Role    string           `json:"role" enum:"user,system,assistant"`
	Content SentContent      `json:"content"`
	Name    rest.Opt[string] `json:"name,omitzero"`
	OTID    rest.Opt[string] `json:"otid,omitzero"`
	Sender  rest.Opt[string] `json:"sender_id,omitzero"`
	Group   rest.Opt[string] `json:"group_id,omitzero"`
}

// SentContent is the content of a client's message: a text, or an array of texts and images.
type SentContent []SentPart

// SentPart is a text or an image.
type SentPart struct {
	Type   string      `json:"type" enum:"text,image"`
	Text   string      `json:"text,omitempty"`
	Source rest.Object `json:"source,omitempty"`
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *SentContent) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte(`"`)) {
		*c = SentContent{{Type: "text"}}
		return json.Unmarshal(raw, &(*c)[0].Text)
	}
	return json.Unmarshal(raw, (*[]SentPart)(c))
}

// Schema implements huma.SchemaProvider.
func (SentContent) Schema(r rest.Registry) *rest.Schema {
	return rest.OneOf(r, reflect.TypeFor[string](), reflect.TypeFor[[]SentPart]())
}

// drafts returns the messages to append. A 422 if an image has no source.
func drafts(messages []InitialMessage) ([]recall.Draft, error) {
	all := make([]recall.Draft, len(messages))
	for i, m := range messages {
		all[i] = recall.Draft{Role: recall.Role(m.Role), Name: m.Name.Pointer(), OTID: m.OTID.Pointer(),
			SenderID: m.Sender.Pointer(), GroupID: m.Group.Pointer()}
		for k, p := range m.Content {
			part := recall.Part{Type: recall.PartType(p.Type), Text: p.Text, Source: json.RawMessage(p.Source)}
			if part.Type == recall.Image && part.Source == nil {
				return nil, rest.Unprocessable(fmt.Sprintf("body.initial_message_sequence[%d].content[%d].source", i, k),
					"expected required property source to be present")
			}
			all[i].Content = append(all[i].Content, part)
		}
	}
	return all, nil
}
