package compaction

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Beside is what a model is sent beside the messages, and how much it takes.
type Beside struct {
	Window     int    // tokens that the model takes
	System     string // the system prompt
	Tools      []byte // definitions in OpenAI's shape, a JSON array; nil for none
	Tokens     int    // of System and Tools
	ToolTokens int    // of Tools
}

// Load reads the view of a conversation that was read, beside what else its model is sent.
func (s *Store) Load(ctx context.Context, org db.Org, c recall.Conversation, beside Beside) (View, error) {
	messages, err := s.Recall.Framed(ctx, org, c)
	if err != nil {
		return View{}, err
	}
	return ViewOf(c, messages[1:], beside) // without the system prompt
}

// ViewOf is the view of a conversation whose messages are read already, the system prompt aside: a summary, if there is one, comes first.
func ViewOf(c recall.Conversation, messages []recall.Message, beside Beside) (v View, err error) {
	clipped := c.Clipped
	if len(clipped) == 0 {
		clipped = json.RawMessage(`[]`)
	}
	v = View{Window: beside.Window, Fixed: beside.Tokens, Tools: beside.ToolTokens, Messages: messages}
	if err := json.Unmarshal(clipped, &v.Clips); err != nil {
		return View{}, fmt.Errorf("read the clips of conversation %s: %w", c.ID, err)
	}
	if len(v.Messages) > 0 && v.Messages[0].Role == recall.Summary {
		if v.Summary, err = summaryOf(v.Messages[0]); err != nil {
			return View{}, err
		}
		v.Messages = v.Messages[1:]
	}
	if c.Reported > 0 {
		v.Usage = &Usage{PromptTokens: c.Reported, Position: c.ReportedPosition}
	}
	return v, nil
}

// summaryOf reads a summary from the message that keeps it.
func summaryOf(m recall.Message) (*Summary, error) {
	if len(m.Content) == 0 {
		return nil, fmt.Errorf("read summary %s: it has no content", m.ID)
	}
	var of stats
	if err := json.Unmarshal(m.Content[0].Stats, &of); err != nil {
		return nil, fmt.Errorf("read summary %s: %w", m.ID, err)
	}
	return &Summary{Text: m.Content[0].Text, From: of.From, To: of.To, FromSeq: of.FromSeq, ToSeq: of.ToSeq, Tokens: m.Tokens, How: of.How,
		Model: of.Model}, nil
}
