package agent

import (
	"context"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// recallFor searches the memories for the user's message that the next prompt ends with, and keeps the note that stands
// behind it from then on. It does nothing if neither the prompt nor the agent has settings of recall, or if the message
// has its note. A failed search leaves the message without a note for this prompt.
func (s *Store) recallFor(ctx context.Context, org db.Org, target PromptTarget) error {
	if s.Recalled == nil {
		return nil
	}
	a, err := s.Agent(ctx, org, target.AgentID)
	if err != nil {
		return err
	}
	settings := target.recallOf(a)
	if settings == nil {
		return nil
	}
	c, err := s.Recall.Conversation(ctx, org, target.AgentID, target.Conversation)
	if err != nil {
		return err
	}
	view, _, err := s.Recall.NewestView(ctx, org, c)
	if err != nil {
		return err
	}
	last := -1
	for i, m := range slices.Backward(view) {
		if m.Role == recall.User && m.Purpose == "" {
			last = i
		}
		if m.Role != recall.System && m.Role != recall.Summary {
			break
		}
	}
	if last < 0 {
		return nil
	}
	newest := view[last]
	if kept, err := s.Recall.Notes(ctx, org, a.Key, []string{newest.ID}); err != nil || len(kept) > 0 {
		return err
	}
	blocks, _, err := s.ShownMemory(ctx, org, a, c)
	if err != nil {
		return err
	}
	shown := []string{blocks}
	for _, m := range view[:last] {
		shown = append(shown, m.Text())
	}
	note, err := s.Recalled(ctx, RecallFor{Org: org, Agent: a.in(c), Conversation: c, Text: newest.Text(),
		Shown: strings.Join(shown, "\n"), Settings: *settings})
	if err != nil {
		return ctx.Err()
	}
	return db.UnlessFull(s.Recall.KeepNote(ctx, org, a.ID, recall.Note{OTID: newest.ID, Conversation: c.ID, Text: note}))
}
