package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// FittedView is what a model sees of a conversation within its window.
type FittedView struct {
	Summary  string                // of the hidden messages, as the model reads it; empty if none are hidden
	Shown    map[string]bool       // by the otids of the messages that are in view
	Edits    map[string][]PartEdit // parts that are shown in another way than they are stored, by the otid of the message
	Shorter  map[string][]PartEdit // Edits, and the beginnings of results that are stored outside the log
	Tokens   int                   // of the prompt
	Compacts bool                  // anything is hidden or edited
}

// PartEdit is a part of a message as the model sees it.
type PartEdit struct {
	Part    int         // index in the message's content
	Shown   recall.Part // its type is empty if the part is left out
	Content int         // number of parts of the message
}

// FitView returns the view of a conversation that fits its window, as a program shows it that sends its own bytes of
// the messages. If necessary, it first compacts the conversation. fits is false if the parts that must stay do not fit.
// ErrBusy if others keep changing the conversation.
func (s *Store) FitView(ctx context.Context, org db.Org, target PromptTarget) (v FittedView, fits bool, err error) {
	p, err := s.assembleFitting(ctx, org, target)
	if _, big := errors.AsType[*plan.TooBig](err); big {
		return v, false, nil
	}
	if err != nil {
		return v, false, err
	}
	view, err := store.ViewOf(p.Conversation, p.Messages, p.task(store.BeforePrompt).Overhead)
	if err != nil {
		return v, false, err
	}
	v = FittedView{Summary: view.SummaryText(), Shown: map[string]bool{}, Edits: map[string][]PartEdit{},
		Shorter: map[string][]PartEdit{}, Tokens: p.Tokens.Total, Compacts: view.Summary != nil || len(view.Edits) > 0}
	edits := clip.EditsByPosition(view.Edits)
	for _, m := range view.Messages {
		if m.OTID == nil {
			continue
		}
		var edited []PartEdit
		for _, e := range edits[m.Position] {
			if clip.IsEditOf(e, m) {
				edited = append(edited, PartEdit{e.Part, view.ShownPart(m, e), len(m.Content)})
			}
		}
		v.Shown[*m.OTID], v.Edits[*m.OTID] = true, edited
		shorter := slices.Clone(edited)
		for i, part := range m.Content {
			if part.Clip != nil && !slices.ContainsFunc(edited, func(e PartEdit) bool { return e.Part == i }) {
				shorter = append(shorter, PartEdit{i, part, len(m.Content)})
			}
		}
		v.Shorter[*m.OTID] = shorter
	}
	return v, true, nil
}

// IsCompacted reports whether a conversation's view hides or shortens anything.
func IsCompacted(c recall.Conversation) bool {
	return c.SummaryAt != nil || len(c.Clipped) > 0 && string(c.Clipped) != "[]" && string(c.Clipped) != "null"
}

// Of returns the content of a message as the view shows it. A nil view shows all of it.
func (v *FittedView) Of(m recall.Message) []recall.Part {
	if v == nil || m.OTID == nil {
		return m.Content
	}
	content := slices.Clone(m.Content)
	for _, e := range v.Edits[*m.OTID] {
		if e.Part < len(content) && e.Shown.Type != "" {
			content[e.Part] = e.Shown
		}
	}
	return content
}
