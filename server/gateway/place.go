package gateway

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// place is where the messages of a request belong: a conversation, and how many of them it has.
type place struct {
	org   db.Org
	agent agent.Agent
	user  string // id of the identity with whom the conversation is; empty: nobody

	conversation string // its id
	exists       bool
	behind       int    // position of the last message of the request that is stored; 0: any
	forkAt       string // id of the message after which the conversation is copied first; empty: it goes on
	forkID       string // of that copy
	units        []unit // of the request
	fresh        int    // index of the first unit that is not stored
	system       string // the request's system prompt
	before       string // stands for the otid before the first unit
}

// named is a conversation that a request names.
type named struct {
	name     string // a caller's own name for it, or its id; empty: none is named
	response string // id of the response that the request goes on from; empty: none
	appends  bool   // the request has only what is new
}

// seed stands for the otid before the first message of a user's conversation with a name.
func seed(user int64, name string) string { return hashed(strconv.FormatInt(user, 10), name) }

// conversationOf returns the id of a conversation that a caller names: the name, if it is an id, else one that is made
// from it.
func conversationOf(a agent.Agent, user int64, name string) string {
	if db.UUID("conv-", name) != uuid.Nil {
		return name
	}
	id := uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%s %d %s", a.ID, user, name))
	id[6] = id[6]&0x0f | 0x40 // the form of all ids here, which are random
	return "conv-" + id.String()
}

// find returns the place of a request's messages. Without a named conversation it is the one that says the most of
// them: its messages are the beginning of the request's, or the request goes on after one of its model's answers. again
// says that the client sends the request once more. ErrNotFound if the named conversation is another user's.
func (g *Gateway) find(ctx context.Context, p place, n named, again bool) (place, error) {
	user := db.UserOf(ctx)
	p.before = seed(user, n.name)
	var last *recall.Known
	if n.response != "" {
		known, err := g.Recall.KnownByStep(ctx, p.org, p.agent.Key, n.response)
		if err != nil && !errors.Is(err, db.ErrNotFound) {
			return p, err
		}
		p.before = hashed(n.response)
		if err == nil && known.OTID != "" {
			c, err := g.Recall.Conversation(ctx, p.org, p.agent.ID, known.Conversation)
			if err != nil && !errors.Is(err, db.ErrNotFound) {
				return p, err
			}
			if err == nil && c.UserKey == user { // the response to another user is not known
				p.before, last = known.OTID, &known
			}
		}
	}
	if n.name != "" {
		p.conversation = conversationOf(p.agent, user, n.name)
		c, err := g.Recall.Conversation(ctx, p.org, p.agent.ID, p.conversation)
		if err == nil && user != 0 && c.UserKey != user {
			err = db.NotFound("Conversation with ID %s is not with the user of the request", db.Short(p.conversation))
			return p, err
		}
		if err != nil && !errors.Is(err, db.ErrNotFound) {
			return p, err
		}
		if err != nil && p.conversation == n.name {
			return p, err
		}
		if p.exists = err == nil; n.appends || !p.exists {
			return p.unlinked(n), nil
		}
	}
	link(p.before, p.units)
	known, err := g.Recall.KnownByOTID(ctx, p.org, p.agent.Key, otidsOf(p.units))
	if err != nil {
		return p, err
	}
	answered := last != nil
	for i, u := range p.units {
		k := slices.IndexFunc(known, func(k recall.Known) bool { return k.OTID == u.otid })
		if k < 0 {
			continue
		}
		answered = answered || u.Role == recall.Assistant
		ends := known[k].Position == known[k].Last
		if n.name != "" && known[k].Conversation != p.conversation || n.name == "" && !answered && !ends && !again {
			continue
		}
		last, p.fresh, p.units[i].place = &known[k], i+1, known[k].Position
	}
	if last == nil {
		return g.unmatched(ctx, p, n)
	}
	p.conversation, p.exists, p.behind = last.Conversation, true, last.Position
	if last.Position == last.Last {
		return p, nil
	}
	if n.name != "" { // it holds all that is said in it
		return g.unmatched(ctx, p, n)
	}
	end, err := g.trailing(ctx, p, *last)
	if p.behind = end; end == 0 {
		p.forkAt, p.forkID, p.behind = last.ID, recall.NewConversationID(), last.Position
	}
	return p, err
}

// unlinked returns the place of messages of a named conversation that is new, or that get only what is new.
func (p place) unlinked(n named) place {
	if !n.appends {
		link(p.before, p.units)
	}
	return p
}

// trailing returns the position of a conversation's end if nothing was said after a message: system prompts,
// summaries, and what the client does not see do not count. It returns 0 if the conversation went on.
func (g *Gateway) trailing(ctx context.Context, p place, k recall.Known) (int, error) {
	c, err := g.Recall.Conversation(ctx, p.org, p.agent.ID, k.Conversation)
	if err != nil {
		return 0, err
	}
	after, err := g.Recall.Between(ctx, p.org, c, k.Position+1, min(c.Messages, k.Position+candidatesAtMost))
	for _, m := range after {
		if m.Role != recall.System && m.Role != recall.Summary && !isInside(m) {
			return 0, err
		}
	}
	return c.Messages, err
}

// recent is how many messages at the end of a conversation are compared with a history that its client shortened.
const recent = 200

// unmatched returns the place of messages that begin as no stored conversation does: the named conversation, or the one
// whose answers the client has kept while it shortened the history; else a new one.
func (g *Gateway) unmatched(ctx context.Context, p place, n named) (place, error) {
	candidates := []string{p.conversation}
	if n.name == "" {
		if !slices.ContainsFunc(p.units, func(u unit) bool { return u.Role == recall.Assistant }) {
			return p.begin(), nil
		}
		var err error
		if candidates, err = g.Recall.LastSpoken(ctx, p.org, p.agent.Key, candidatesAtMost); err != nil {
			return p, err
		}
	}
	for _, id := range candidates {
		c, err := g.Recall.Conversation(ctx, p.org, p.agent.ID, id)
		if err != nil && !errors.Is(err, db.ErrNotFound) {
			return p, err
		}
		if err != nil || c.UserKey != db.UserOf(ctx) && n.name == "" {
			continue
		}
		messages, err := g.Recall.Between(ctx, p.org, c, max(1, c.Messages-recent+1), c.Messages)
		if err != nil {
			return p, err
		}
		if p.goesOn(messages, n.name != "") {
			p.conversation, p.exists, p.behind = c.ID, true, c.Messages
			return p, nil
		}
	}
	return p.begin(), nil
}

// candidatesAtMost is how many conversations are compared with a shortened history.
const candidatesAtMost = 5

// minTelling is the least length of an answer, in bytes without spaces, that no other conversation has by chance.
const minTelling = 40

// isTelling reports whether a unit is an answer that no other conversation has by chance.
func isTelling(u unit) bool {
	return u.Role == recall.Assistant && len(withoutSpaces(textOf(u.Draft))) >= minTelling
}

// goesOn reports whether the units go on from the end of a conversation with these messages: a run of units is what was
// said there last, and holds an answer that is telling or the message that it answers. It marks the units of the run,
// and the units before it that the conversation has. Units behind the run are new. always says that they go on in any
// case.
func (p *place) goesOn(messages []recall.Message, always bool) bool {
	var said []unit
	for _, m := range messages {
		if m.Role != recall.System && m.Role != recall.Summary && !isInside(m) {
			u := unit{Draft: recall.Draft{Role: m.Role, Content: m.Content}, place: m.Position}
			if m.OTID != nil {
				u.otid = *m.OTID
			}
			said = append(said, u)
		}
	}
	stored := make([][sha256.Size]byte, len(said))
	at := map[[sha256.Size]byte]unit{}
	for i, u := range said {
		stored[i] = digest(u.Draft)
		at[stored[i]] = u
	}
	sums := make([][sha256.Size]byte, len(p.units))
	for i, u := range p.units {
		sums[i] = digest(u.Draft)
	}
	end := -1
	for last := len(p.units) - 1; last >= 0 && end < 0; last-- {
		length, tells := 0, false
		for length <= last && length < len(stored) && sums[last-length] == stored[len(stored)-1-length] {
			u := p.units[last-length]
			tells = tells || isTelling(u) || length > 0 && (u.Role == recall.Assistant ||
				p.units[last-length+1].Role == recall.Assistant)
			length++
		}
		if tells || always && length > 0 {
			end = last
		}
	}
	if end < 0 && !always {
		return false
	}
	for i := range p.units {
		u, has := at[sums[i]]
		if p.units[i].known = has && i <= end; p.units[i].known {
			p.units[i].stored, p.units[i].place = u.otid, u.place
		}
	}
	p.fresh = 0
	return true
}

// begin returns the place of a new conversation.
func (p place) begin() place {
	p.conversation, p.exists, p.fresh = recall.NewConversationID(), false, 0
	return p
}

func otidsOf(units []unit) (all []string) {
	for _, u := range units {
		if u.otid != "" {
			all = append(all, u.otid)
		}
	}
	return all
}

// maxMoves is how often messages are stored elsewhere because their conversation went on meanwhile.
const maxMoves = 5

// keep stores the units that are not stored yet, in a new conversation or a copy where the place says so. It returns
// the place behind them.
func (g *Gateway) keep(ctx context.Context, p place) (place, error) {
	drafts := p.drafts()
	if len(drafts) == 0 {
		return p, nil
	}
	var err error
	for range maxMoves {
		if err = g.prepare(ctx, &p); err != nil {
			return p, err
		}
		var recorded loop.Recorded
		recorded, err = g.Loop.Record(ctx, p.org, p.agent, loop.Record{Conversation: p.conversation,
			Drafts: recall.Each(p.withSystem(drafts)), Leaves: true, Behind: p.behind, Take: otidsOf(p.units)})
		if err == nil {
			p.conversation, p.exists = recorded.Conversation.ID, true
			p.behind, p.forkAt, p.system = recorded.Messages[len(recorded.Messages)-1].Position, "", ""
			return p, nil
		}
		if !errors.Is(err, loop.ErrMoved) && !errors.Is(err, db.ErrConflict) || p.behind == 0 {
			return p, err
		}
		end, err := g.trailing(ctx, p, recall.Known{Conversation: p.conversation, Position: p.behind})
		if err != nil {
			return p, err
		}
		if end > p.behind {
			p.behind = end
			continue
		}
		if p.forkAt, err = g.messageAt(ctx, p); err != nil {
			return p, err
		}
		p.forkID = recall.NewConversationID()
	}
	return p, err
}

// withSystem adds the system prompt before drafts. The log keeps it once until it changes.
func (p place) withSystem(drafts []recall.Draft) []recall.Draft {
	if p.system == "" {
		return drafts
	}
	otid := hashed("system", p.conversation, p.system)
	return append([]recall.Draft{{Role: recall.System, OTID: &otid,
		Content: []recall.Part{{Type: recall.Text, Text: p.system}}}}, drafts...)
}

// messageAt returns the id of the message behind which a request goes on.
func (g *Gateway) messageAt(ctx context.Context, p place) (string, error) {
	c, err := g.Recall.Conversation(ctx, p.org, p.agent.ID, p.conversation)
	if err != nil {
		return "", err
	}
	messages, err := g.Recall.Between(ctx, p.org, c, p.behind, p.behind)
	if err != nil || len(messages) == 0 {
		return "", err
	}
	return messages[0].ID, nil
}

// prepare makes the conversation, or the copy of it, that the place names.
func (g *Gateway) prepare(ctx context.Context, p *place) error {
	switch {
	case p.forkAt != "":
		c, err := g.Recall.Conversation(ctx, p.org, p.agent.ID, p.conversation)
		if err != nil {
			return err
		}
		fork, err := g.Agents.Fork(ctx, p.org, c, agent.ForkTo{MessageID: p.forkAt, ID: p.forkID})
		if err != nil {
			return err
		}
		p.conversation, p.behind, p.forkAt = fork.ID, fork.Messages, ""
	case !p.exists:
		_, err := g.Agents.CreateConversation(ctx, p.org, p.agent.ID, agent.NewConversation{
			NewConversation: recall.NewConversation{ID: p.conversation}, User: p.user})
		if err != nil && !errors.Is(err, db.ErrConflict) {
			return err
		}
		p.exists = true
	}
	return nil
}

// drafts returns what is to be stored.
func (p place) drafts() (drafts []recall.Draft) {
	for _, u := range p.units[p.fresh:] {
		if u.known {
			continue
		}
		d := u.Draft
		if u.otid != "" {
			d.OTID = &u.otid
		}
		drafts = append(drafts, d)
	}
	return drafts
}
