package gateway

import (
	"context"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// notesOf returns the notes that were put in behind the request's messages before, by the messages' otids.
func (x *exchange) notesOf(ctx context.Context) (map[string]string, error) {
	p := x.place
	otids := otidsOf(p.units)
	for _, u := range p.units {
		if u.stored != "" {
			otids = append(otids, u.stored)
		}
	}
	notes, err := x.Recall.Notes(ctx, p.org, p.agent.Key, otids)
	behind := map[string]string{}
	for _, n := range notes {
		if behind[n.OTID] == "" || n.Conversation == p.conversation {
			behind[n.OTID] = n.Text
		}
	}
	return behind, err
}

// recall adds to the request what the memories hold: notes behind messages, blocks in the system prompt, and the
// working memory at the end.
func (x *exchange) recall(ctx context.Context, behind map[string]string) error {
	p := x.place
	last := len(p.units) - 1
	newest := p.units[last]
	var c recall.Conversation
	var err error
	if p.exists {
		if c, err = x.Recall.Conversation(ctx, p.org, p.agent.ID, p.conversation); err != nil {
			return err
		}
	}
	blocks, working, err := x.Agents.ShownMemory(ctx, p.org, p.agent, c)
	if err != nil {
		return err
	}
	for i, u := range p.units {
		if u.hidden {
			continue
		}
		note, kept := behind[u.otid], behind[u.otid] != ""
		switch {
		case u.Role != recall.User:
			continue
		case note == "" && u.stored != "":
			note = behind[u.stored]
		case i == last && i >= p.fresh && !u.known:
			note = x.note(ctx, c, shownTexts(p)+blocks)
		}
		if note == "" {
			continue
		}
		if x.body.addToItem(u.last(), note, x.dialect.partType); !kept && u.otid != "" {
			x.notes = append(x.notes, recall.Note{OTID: u.otid, Text: note})
		}
	}
	if blocks != "" {
		x.dialect.addSystem(x.body, blocks)
	}
	if working != "" && newest.Role == recall.User {
		x.body.addToItem(newest.last(), "\n\n"+working, x.dialect.partType)
	}
	return nil
}

// note returns what the memories hold that helps with the newest message; empty if nothing does, or if the search
// takes too long.
func (x *exchange) note(ctx context.Context, c recall.Conversation, shown string) string {
	p := x.place
	if !p.exists {
		c = recall.Conversation{ID: p.conversation, UserKey: db.UserOf(ctx)}
	}
	note, err := x.Tools.Note(ctx, tool.NoteQuery{Org: p.org, Agent: p.agent, Conversation: c,
		Text: textOf(p.units[len(p.units)-1].Draft), Shown: shown, Settings: x.recallSettings()})
	if err != nil {
		x.Log.DebugContext(ctx, "the gateway recalls nothing", "error", err)
	}
	return note
}

// recallSettings returns the settings of recall of the request's agent.
func (x *exchange) recallSettings() agent.RecallSettings {
	if s := x.place.agent.Settings.Recall; s != nil {
		return *s
	}
	return agent.RecallSettings{}
}

// shownTexts returns what the request itself says.
func shownTexts(p place) string {
	var b strings.Builder
	b.WriteString(p.system)
	for _, u := range p.units {
		if u.hidden {
			continue
		}
		for _, part := range u.Content {
			b.WriteString("\n" + part.Text)
		}
	}
	return b.String()
}
