package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// PromptOverhead is what a prompt contains besides a conversation's messages.
type PromptOverhead struct {
	Window     int    // the model's context window in tokens
	System     string // the system prompt
	Tools      []byte // definitions in OpenAI's form, a JSON array; nil for none
	Tokens     int    // of System and Tools
	ToolTokens int    // of Tools
	Has        recall.Toolset

	Count  func(text string) int // counts tokens for the model; nil keeps the log's counts
	Factor tokens.Factor         // the model's factor, if its provider reported no count; 0 is 1
}

// LoadView reads a conversation's view. If it is too large for a prompt, the older messages are abridged.
func (s *Store) LoadView(ctx context.Context, org db.Org, c recall.Conversation, overhead PromptOverhead) (clip.View,
	error) {
	messages, err := s.Recall.AbridgedView(ctx, org, c)
	if err != nil {
		return clip.View{}, err
	}
	return ViewOf(c, messages[1:], overhead) // without the system prompt
}

// ViewOf returns the view of a conversation from messages that were already read, without the system prompt. If there
// is a summary, it is the first of them. If overhead has a Count, it counts the messages.
func ViewOf(c recall.Conversation, messages []recall.Message, overhead PromptOverhead) (v clip.View, err error) {
	v = clip.View{Window: overhead.Window, Fixed: overhead.Tokens, Tools: overhead.ToolTokens, Count: overhead.Count,
		Has: overhead.Has, Messages: messages}
	if len(c.Clipped) > 0 {
		if err := json.Unmarshal(c.Clipped, &v.Edits); err != nil {
			return clip.View{}, fmt.Errorf("read the clips of conversation %s: %w", c.ID, err)
		}
	}
	if len(v.Messages) > 0 && v.Messages[0].Role == recall.Summary {
		if v.Summary, err = SummaryOf(v.Messages[0]); err != nil {
			return clip.View{}, err
		}
		if v.Messages[0].Refused != nil { // another text stands in its place, and the clip does not fit it
			v.Edits = slices.DeleteFunc(v.Edits, func(e clip.Edit) bool { return e.Position == 0 })
		}
		v.Messages = v.Messages[1:]
		whole := clip.View{Summary: v.Summary, Messages: v.Messages, Has: v.Has}
		v.Summary.Tokens = tokens.PerMessage + v.CountText(whole.SummaryText())
	}
	if v.Count != nil {
		v.Messages = slices.Clone(v.Messages)
		for i, m := range v.Messages {
			if m.Abridged {
				continue
			}
			v.Messages[i].Tokens = tokens.PerMessage
			for _, p := range m.Content {
				v.Messages[i].Tokens += v.WholePartTokens(p)
			}
		}
	}
	if c.Reported > 0 {
		v.Usage = &clip.Usage{PromptTokens: c.Reported, Position: c.ReportedPosition}
	} else if n := len(v.Messages); n > 0 && overhead.Factor > 0 {
		v.Usage = &clip.Usage{PromptTokens: overhead.Factor.Of(clip.Counted(v)), Position: v.Messages[n-1].Position}
	}
	return v, nil
}

// SummaryOf reads a summary from its message.
func SummaryOf(m recall.Message) (*clip.Summary, error) {
	if len(m.Content) == 0 {
		return nil, fmt.Errorf("read summary %s: it has no content", m.ID)
	}
	var st stats
	if err := json.Unmarshal(m.Content[0].Stats, &st); err != nil {
		return nil, fmt.Errorf("read summary %s: %w", m.ID, err)
	}
	return &clip.Summary{Text: m.Content[0].Text, From: st.From, To: st.To, FromSeq: st.FromSeq, ToSeq: st.ToSeq,
		Tokens: m.Tokens, How: st.How, Model: st.Model, Before: st.WordsBefore, After: st.WordsAfter}, nil
}
