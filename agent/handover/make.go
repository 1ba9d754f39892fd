package handover

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/db"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
)

// Make makes a Running hand-over, and applies its updates unless they wait for an operator. It stores everything in one
// transaction, so even if two servers make a hand-over at once, it is stored only once. ErrNotFound if the hand-over
// does not exist. If the conversation was deleted, the hand-over fails.
func (s *Store) Make(ctx context.Context, org db.Org, agentID, id string) error {
	h, err := s.Handover(ctx, org, agentID, id)
	if err != nil || h.Status != Running {
		return err
	}
	m, err := db.One[*material](ctx, s.DB, `SELECT material FROM handovers WHERE org = $1 AND key = $2`, org, h.Key)
	if err != nil || m == nil { // nil: another server has made the hand-over
		return err
	}
	a, err := s.Agents.Agent(ctx, org, agentID)
	if err != nil {
		return err
	}
	routes, err := s.routesOf(ctx, org, a, h)
	if err != nil {
		return err
	}
	how := ByModel
	found, why := s.propose(ctx, *m, routes.manifest())
	if err := ctx.Err(); err != nil {
		return err
	}
	if why != "" {
		how, found = Extracted, extract(*m)
	}
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		return s.With(tx).finish(ctx, org, a, finishing{h, *m, routes.route(found), how, why})
	})
}

// finishing is a hand-over with its updates, ready to be stored.
type finishing struct {
	Handover
	material material
	updates  []Update
	how, why string
}

// nothingFound begins the reason of a hand-over that hands nothing over because no model answered and the rules found
// nothing. The messages are not spent: the next hand-over of the conversation has them, too.
const nothingFound = "The rules found nothing to hand over, and the next hand-over tries again. "

// maxWhyBytes bounds the reason that a hand-over shows.
const maxWhyBytes = 300

func (s *Store) finish(ctx context.Context, org db.Org, a agent.Agent, f finishing) error {
	type state struct {
		Status string `db:"status"`
		There  bool   `db:"there"`
	}
	current, err := db.One[state](ctx, s.DB, `
		SELECT h.status, `+hasNotGone+` AS there
		FROM handovers h JOIN conversations c ON c.org = h.org AND c.key = h.conversation_key
		WHERE h.org = $1 AND c.org = $1 AND h.key = $2 FOR UPDATE OF h`, org, f.Key)
	switch {
	case err != nil || current.Status != Running:
		return err
	case !current.There:
		return s.fail(ctx, org, f.ID, "its conversation was deleted")
	}
	if f.Handover, err = s.Handover(ctx, org, a.ID, f.ID); err != nil { // now with the conversation that took it
		return err
	}
	if len(f.updates) == 0 && f.how == Extracted {
		f.why = nothingFound + f.why
	}
	end, updates := Done, applying{s, org, a, f.Handover, f.material.Next}
	for i := range f.updates {
		u := &f.updates[i]
		u.Number, u.Status = i+1, Proposed
		if f.Pending {
			end = Waiting
		} else if err := updates.apply(ctx, u); err != nil {
			return err
		}
		if err := s.insert(ctx, org, f.Key, *u); err != nil {
			return err
		}
	}
	return db.Exec(ctx, s.DB, `
		UPDATE handovers
		SET status = @status, how = @how, why = nullif(@why, ''), ended_at = now(),
		    material = CASE WHEN @status = 'waiting' THEN jsonb_build_object('next', material -> 'next') END
		WHERE org = @org AND key = @key`,
		pgx.StrictNamedArgs{"org": org, "key": f.Key, "status": end, "how": f.how, "why": db.Beginning(f.why, maxWhyBytes)})
}

func (s *Store) insert(ctx context.Context, org db.Org, handover int64, u Update) error {
	return db.Exec(ctx, s.DB, `
		INSERT INTO handover_updates (org, handover_key, number, section, text, seqs, target, entity, status, why,
		                              decided_at)
		VALUES (@org, @handover, @number, @section, @text, @seqs, @target, @entity, @status, @why, @decided)`,
		pgx.StrictNamedArgs{"org": org, "handover": handover, "number": u.Number, "section": u.Section, "text": u.Text,
			"seqs": u.Seqs, "target": u.Target, "entity": u.Entity, "status": u.Status, "why": u.Why,
			"decided": u.DecidedAt})
}

// applying applies the updates of a hand-over.
type applying struct {
	*Store
	org      db.Org
	agent    agent.Agent
	handover Handover
	wasNext  string // the next step in working memory at the time of the hand-over
}

// apply applies an update and sets its status. If a rule of the memory refuses the update, that is not an error.
func (p applying) apply(ctx context.Context, u *Update) error {
	var why *string
	err := db.Tx(ctx, p.DB, func(tx pgx.Tx) (err error) { // so that a refused update changes nothing
		inTx := p
		if inTx.Store = p.With(tx); strings.HasPrefix(u.Target, memoryfile.Root+"/") {
			why, err = inTx.toFile(ctx, *u)
			return err
		}
		return inTx.toWorking(ctx, *u)
	})
	u.Status, u.Why, u.DecidedAt = Applied, why, new(time.Now())
	if errors.Is(err, db.ErrInvalid) || errors.Is(err, db.ErrConflict) || errors.Is(err, db.ErrNotFound) {
		u.Status, u.Why = Refused, new(err.Error())
		return nil
	}
	return err
}

// toFile writes an update to its file. If the index cannot point to the file, it returns the reason; otherwise nil.
func (p applying) toFile(ctx context.Context, u Update) (*string, error) {
	ctx, err := p.forUser(ctx, p.org, p.agent, p.handover)
	if err != nil {
		return nil, err
	}
	t, err := p.Agents.MemoryFiles.Writable(ctx, p.org, p.agent.ID)
	if err != nil {
		return nil, err
	}
	target := memoryfile.At{Org: p.org, Tree: t.ID, Author: db.Provenance{AgentID: p.agent.ID,
		ConversationID: p.handover.ConversationID, Tool: "handover"}.Or(ctx)}
	text := fmt.Sprintf("- %s (%s, %s)", u.Text, cited(u.Seqs), p.day())
	if err := p.Agents.MemoryFiles.AddLine(ctx, target, u.Target, text, u.supersedes()); err != nil {
		return nil, err
	}
	return p.point(ctx, target, u)
}

// supersedes returns a function that finds the lines of a file that an update makes untrue. They tell the same
// attribute of the user, such as an earlier home. It returns nil if the update tells no attribute.
func (u Update) supersedes() func(line string) bool {
	if u.Entity == nil || !strings.EqualFold(*u.Entity, userName) {
		return nil
	}
	attribute := attributeOf(u.Text)
	if attribute == "" {
		return nil
	}
	return func(line string) bool { return strings.HasPrefix(line, "- ") && attributeOf(line) == attribute }
}

// day returns the date of the hand-over.
func (p applying) day() string { return p.handover.CreatedAt.UTC().Format(time.DateOnly) }

// point makes the index point to the file of an update, with what the update says; or without it, if the rules of the
// index refuse the text. If they refuse the pointer, too, the file stays written, and point returns the reason.
func (p applying) point(ctx context.Context, at memoryfile.At, u Update) (*string, error) {
	var err error
	for _, says := range []string{u.Text, ""} {
		err = db.Tx(ctx, p.DB, func(tx pgx.Tx) error {
			return p.With(tx).Agents.MemoryFiles.Point(ctx, at, u.Target, memoryfile.Recent{Day: p.day(), Says: says})
		})
		if !errors.Is(err, db.ErrInvalid) && !errors.Is(err, db.ErrConflict) {
			return nil, err
		}
	}
	return new("It is written, but the index does not point to its file: " + err.Error()), nil
}

// cited names positions of the log in the form that the tool expand reads.
func cited(seqs []int64) string {
	named := make([]string, len(seqs))
	for i, seq := range seqs {
		named[i] = fmt.Sprintf("seq %d", seq)
	}
	return strings.Join(named, ", ")
}

// toWorking changes the working memory of the conversation that took the hand-over; if none took it, of the
// conversation that was handed over. It keeps a next step that was changed after the hand-over, and a task that was set
// in the session.
func (p applying) toWorking(ctx context.Context, u Update) error {
	h := p.handover
	conversation := h.ConversationID
	if h.TakenBy != nil {
		conversation = *h.TakenBy
	}
	c, err := p.Agents.Recall.Conversation(ctx, p.org, h.AgentID, conversation)
	if err != nil {
		return err
	}
	if u.Section == SectionNext || u.Section == SectionTask {
		current, err := p.Agents.Working.Memory(ctx, p.org, c)
		if err != nil {
			return err
		}
		if u.Section == SectionTask && current.Task != nil && current.Task.Seq >= u.Seqs[0] {
			return db.Conflict("the task was set in this session: %s", db.Short(current.Task.Text))
		}
		if u.Section == SectionNext && current.Next != nil && current.Next.Text != p.wasNext && current.Next.Text != u.Text {
			return db.Conflict("the next step was changed since: %s", db.Short(current.Next.Text))
		}
	}
	return p.Agents.Working.Add(ctx, p.org, working.Target{AgentID: h.AgentID, Conversation: c.ID,
		Author: working.Author{Kind: working.ByHandover, From: h.ConversationID,
			Provenance: db.Provenance{AgentID: h.AgentID}}},
		working.NewEntry{Field: working.Field(u.Target), Text: u.Text, Seq: u.Seqs[len(u.Seqs)-1]})
}

// Decision is an operator's decision on updates of a hand-over.
type Decision struct {
	Handover string // the id of the hand-over
	Number   int    // of the update; 0 means every waiting update
	Approve  bool
}

// Decide applies or rejects updates of a hand-over that wait for a decision. Repeating a decision changes nothing.
// ErrConflict if the opposite was decided before, or if the hand-over is still being made. The last decision ends the
// hand-over.
func (s *Store) Decide(ctx context.Context, org db.Org, a agent.Agent, d Decision) (h Handover, err error) {
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		if h, err = inTx.Handover(ctx, org, a.ID, d.Handover); err != nil {
			return err
		}
		m, err := db.One[*material](ctx, tx, `
			SELECT material FROM handovers WHERE org = $1 AND key = $2 FOR UPDATE`, org, h.Key)
		if err != nil {
			return err
		}
		if h, err = inTx.Handover(ctx, org, a.ID, d.Handover); err != nil { // read again under the lock
			return err
		}
		decided, err := h.decided(d.Number)
		if err != nil {
			return err
		}
		p := applying{Store: inTx, org: org, agent: a, handover: h}
		if m != nil {
			p.wasNext = m.Next
		}
		for _, u := range decided {
			if err := p.decide(ctx, u, d.Approve); err != nil {
				return err
			}
		}
		h, err = inTx.Handover(ctx, org, a.ID, d.Handover)
		return err
	})
	return h, err
}

// decided returns the updates that a decision concerns, by the number in the decision.
func (h Handover) decided(number int) (all []*Update, err error) {
	switch {
	case h.Status == Running:
		return nil, db.Conflict("Hand-over %s is still made: decide on its updates when it is", h.ID)
	case number < 0 || number > len(h.Updates):
		return nil, db.NotFound("Hand-over %s has no update %d", h.ID, number)
	case number > 0:
		return []*Update{&h.Updates[number-1]}, nil
	}
	for i := range h.Updates {
		if h.Updates[i].Status == Proposed {
			all = append(all, &h.Updates[i])
		}
	}
	return all, nil
}

func (p applying) decide(ctx context.Context, u *Update, approve bool) error {
	if u.Status != Proposed {
		if (u.Status == Rejected) == approve {
			return db.Conflict("Update %d of hand-over %s is %s already", u.Number, p.handover.ID, u.Status)
		}
		return nil
	}
	if u.Status, u.DecidedAt = Rejected, new(time.Now()); approve {
		if err := p.apply(ctx, u); err != nil {
			return err
		}
	}
	if err := db.Exec(ctx, p.DB, `
		UPDATE handover_updates SET status = $4, why = $5, decided_at = $6, provenance = $7
		WHERE org = $1 AND handover_key = $2 AND number = $3`,
		p.org, p.handover.Key, u.Number, u.Status, u.Why, u.DecidedAt, db.ProvenanceOf(ctx)); err != nil {
		return err
	}
	_, err := p.DB.Exec(ctx, `
		UPDATE handovers SET status = 'done', material = NULL
		WHERE org = $1 AND key = $2 AND status = 'waiting' AND NOT EXISTS (
			SELECT FROM handover_updates WHERE org = $1 AND handover_key = $2 AND status = 'proposed')`,
		p.org, p.handover.Key)
	return db.Error(err)
}
