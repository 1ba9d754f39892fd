package agentfile

import (
	"context"
	"strings"

	"github.com/loci-memory/loci/compaction/store"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/recall"
)

func (i *imports) restoreConversations(ctx context.Context) error {
	conversations := streamOf(i, listConversations, func(c *recall.PortableConversation) error {
		var origin error
		if c.ForkedFrom != nil {
			origin = i.id("conv-", c.ForkedFrom)
		}
		return firstOf(i.id("conv-", &c.ID), i.agentID(&c.AgentID), store.CheckView(c.Clipped), origin)
	})
	defer conversations.stop()
	messages := streamOf(i, listMessages, i.readyMessage)
	defer messages.stop()
	defaults := map[string]bool{}
	for c, err := range conversations.all() {
		if err != nil {
			return err
		}
		if err := i.Agents.Recall.RestoreConversation(ctx, i.org, c); err != nil {
			return at(conversations.place, err)
		}
		ofConversation := messages.take(func(m recall.PortableMessage) bool { return m.ConversationID == c.ID })
		if err := i.Agents.Recall.RestoreMessages(ctx, i.org, c, ofConversation); err != nil {
			return at(conversations.place, err)
		}
		if err := i.Agents.Recall.FinishConversation(ctx, i.org, c); err != nil {
			return at(conversations.place, err)
		}
		i.conversations[c.ID] = true
		defaults[c.AgentID] = defaults[c.AgentID] || c.IsDefault && c.Reset == nil
	}
	for _, id := range i.agentIDs {
		if !defaults[id] {
			return db.Invalid("%s: there is no default conversation of agent %s", listConversations, id)
		}
	}
	return messages.end()
}

// readyMessage replaces the ids in a message, and those of the long results in it, by the new ids.
func (i *imports) readyMessage(m *recall.PortableMessage) error {
	for n, p := range m.Content {
		if p.Clip != nil {
			p.Clip.ID = i.ids.any(p.Clip.ID)
		}
		if p.Type == recall.Text || p.Type == recall.ToolCall || p.Type == recall.ToolReturn {
			m.Content[n].Text, m.Content[n].Input = i.keptIDs.Replace(p.Text), i.keptIDs.Replace(p.Input)
		}
	}
	return firstOf(i.provenance(&m.Provenance), i.id("conv-", &m.ConversationID), i.id("message-", &m.ID),
		store.CheckView(nil, *m))
}

// readKeptIDs prepares the replacement of kept results' ids in the texts of messages.
func (i *imports) readKeptIDs(context.Context) error {
	var pairs []string
	for it, err := range i.file.items(listKept) {
		if err != nil {
			return err
		}
		var result struct{ ID string }
		if err := decode(it.place, it.raw, &result); err != nil {
			return err
		}
		if newID := i.ids.any(result.ID); newID != result.ID {
			pairs = append(pairs, result.ID, newID)
		}
	}
	i.keptIDs = strings.NewReplacer(pairs...)
	return nil
}

func (i *imports) restoreKept(ctx context.Context) error {
	results := streamOf(i, listKept, func(r *recall.KeptResult) error {
		r.ID = i.ids.any(r.ID)
		return i.conversation(&r.ConversationID)
	})
	defer results.stop()
	for r, err := range results.all() {
		if err != nil {
			return err
		}
		if err := i.Agents.Recall.RestoreKept(ctx, i.org, r); err != nil {
			return at(results.place, err)
		}
	}
	return nil
}

func (i *imports) restoreCompactions(ctx context.Context) error {
	compactions := streamOf(i, listCompactions, func(k *store.Portable) error {
		return firstOf(i.provenance(&k.Provenance), i.id("compaction-", &k.ID), i.conversation(&k.ConversationID))
	})
	defer compactions.stop()
	for k, err := range compactions.all() {
		if err != nil {
			return err
		}
		if err := i.Agents.Compaction.RestoreCompaction(ctx, i.org, k); err != nil {
			return at(compactions.place, err)
		}
	}
	return nil
}

func (i *imports) restoreEvents(ctx context.Context) error {
	events := streamOf(i, listEvents, func(e *event.Portable) error {
		e.RefID = i.ids.any(e.RefID)
		return i.agentID(&e.AgentID)
	})
	defer events.stop()
	for _, id := range i.made.AgentIDs {
		ofAgent := events.take(func(e event.Portable) bool { return e.AgentID == id })
		if err := event.Restore(ctx, i.tx, i.org, id, ofAgent); err != nil {
			return at(listEvents, err)
		}
	}
	return events.end()
}

func (i *imports) restoreConsumers(ctx context.Context) error {
	consumers := streamOf(i, listConsumers, func(c *event.PortableConsumer) error { return i.agentID(&c.AgentID) })
	defer consumers.stop()
	names := map[string]bool{}
	for c, err := range consumers.all() {
		if err != nil {
			return err
		}
		if names[c.AgentID+c.Name] {
			return db.Invalid("%s.name: the agent has two readers %q", consumers.place, db.Short(c.Name))
		}
		names[c.AgentID+c.Name] = true
		if err := event.RestoreConsumer(ctx, i.tx, i.org, c); err != nil {
			return at(consumers.place, err)
		}
	}
	return nil
}
