package agent

import (
	"context"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// RecallFor is a message for which the memories are searched.
type RecallFor struct {
	Org          db.Org
	Agent        Agent
	Conversation recall.Conversation
	Text         string // of the message
	Shown        string // what the model sees anyway
	Settings     RecallSettings
}

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

// recallOf returns the settings of recall in force for a prompt; nil if nothing is recalled.
func (at PromptTarget) recallOf(a Agent) *RecallSettings {
	if at.Recall != nil {
		return at.Recall
	}
	return a.Settings.Recall
}

// readNotes reads the notes behind the prompt's messages, by the ids of these.
func (s *Store) readNotes(ctx context.Context, org db.Org, p *Prompt) error {
	var ids []string
	for _, m := range p.Messages {
		if m.Role == recall.User {
			ids = append(ids, m.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	notes, err := s.Recall.Notes(ctx, org, p.Agent.Key, ids)
	p.notes = map[string]string{}
	for _, n := range notes {
		p.notes[n.OTID] = n.Text
	}
	return err
}

// withNotes returns messages with the notes behind them.
func withNotes(messages []recall.Message, notes map[string]string) []recall.Message {
	if len(notes) == 0 {
		return messages
	}
	all := slices.Clone(messages)
	for i, m := range all {
		note := strings.TrimSpace(notes[m.ID])
		if note == "" || m.Role != recall.User {
			continue
		}
		all[i].Content = append(slices.Clone(m.Content),
			recall.Part{Type: recall.Text, Text: note, NoteAt: [2]int{0, len(note)}})
	}
	return all
}
