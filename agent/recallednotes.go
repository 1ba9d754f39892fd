package agent

import (
	"context"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

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
