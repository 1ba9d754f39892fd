package loop

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// answered returns the id of the run that was made from the same approvals and messages, found by the approvals' otids;
// empty if no run has one of them. ErrConflict if a run has one, but with other approvals or messages.
func (l *Loop) answered(ctx context.Context, tx pgx.Tx, org db.Org, c recall.Conversation, r Request) (string, error) {
	if len(r.Options.OTIDs) == 0 {
		return "", nil
	}
	earlier, err := db.One[Run](ctx, tx, runRows+` AND c.key = @conversation AND r.status <> 'running'
		AND r.request -> 'otids' ?| @otids ORDER BY r.created_at DESC, r.key DESC LIMIT 1`,
		pgx.StrictNamedArgs{"org": org, "conversation": c.Key, "otids": r.Options.OTIDs})
	if err != nil {
		return "", ignoreNotFound(err)
	}
	same := slices.Equal(earlier.Options.Approvals, r.Approvals) &&
		bytes.Equal(earlier.Options.InputSHA256, r.Options.InputSHA256)
	if !same {
		return "", db.Conflict("The otid %q belongs to an earlier request that approved or denied other calls, or came with "+
			"other messages: nothing is stored. A new answer needs an otid of its own", db.Short(r.Options.OTIDs[0]))
	}
	return cmp.Or(earlier.Options.Resumes, earlier.ID), nil
}

// repetition returns the id of the run that was made from these messages if all of them were stored before; empty if
// they belong to no run. ErrConflict if only some were stored before, or if they belong to several runs or to another
// conversation.
func repetition(ctx context.Context, log *recall.Store, org db.Org, c recall.Conversation, appended []recall.Appended) (
	run string, err error) {
	var last *recall.Appended // the last one that belongs to a run
	for i, a := range appended {
		if !a.Repeated {
			continue
		}
		m, err := log.Message(ctx, org, a.ID)
		switch {
		case err != nil:
			return "", err
		case (m.ConversationID == nil) != c.IsDefault || m.ConversationID != nil && *m.ConversationID != c.ID:
			return "", db.Conflict("The otid %q belongs to a message of another conversation of the agent; a new message "+
				"needs an otid of its own", db.Short(*a.OTID))
		case m.RunID == nil: // it was captured
			continue
		case last != nil && *m.RunID != run:
			return "", db.Conflict("The otids %q and %q belong to messages of two earlier requests; a new message needs an "+
				"otid of its own", db.Short(*last.OTID), db.Short(*a.OTID))
		}
		last, run = &appended[i], *m.RunID
	}
	if last != nil && slices.ContainsFunc(appended, func(a recall.Appended) bool { return !a.Repeated }) {
		return "", db.Conflict("The message with the otid %q was sent before, without others of this request: nothing is "+
			"stored. Send the new messages alone", db.Short(*last.OTID))
	}
	return run, nil
}

// known reports whether a message is already stored, by its otid.
func (l *Loop) known(ctx context.Context, in *recall.Store, org db.Org, c recall.Conversation, d recall.Draft) bool {
	if d.OTID == nil {
		return false
	}
	_, err := in.ByOTID(ctx, org, c.AgentKey, *d.OTID)
	return err == nil
}

// found returns an agent's run that was made from the same input: a *BusyError while it runs, otherwise its events from
// the log. ErrConflict if the run's record was deleted, or if it failed and the conversation has gone on since.
func (l *Loop) found(ctx context.Context, org db.Org, agentID, id string) (Started, error) {
	r, err := l.RunByID(ctx, org, id)
	if errors.Is(err, db.ErrNotFound) {
		return Started{}, db.Conflict("The request was sent before, and the record of its run %s was deleted: nothing is "+
			"stored. GET /v1/agents/%s/messages has what came of it. A new message needs an otid of its own", id, agentID)
	}
	if err == nil {
		r, err = l.latestAttempt(ctx, org, r)
	}
	if err != nil {
		return Started{}, err
	}
	switch {
	case r.Status == Running:
		return Started{}, &BusyError{r.ID}
	case r.Status == Failed && r.StopReason != nil && slices.Contains(resumable, *r.StopReason):
		return Started{}, db.Conflict("The request was sent before, its run %s failed, and the conversation has newer "+
			"messages, so that it does not go on: nothing is stored. Send the text again with an otid of its own", r.ID)
	}
	f, err := l.storedFeed(ctx, org, r)
	return Started{r, f}, err
}

// produced returns the messages that a run made.
func (l *Loop) produced(ctx context.Context, org db.Org, r Run) ([]recall.Message, error) {
	all, err := l.Recall.Messages(ctx, org, recall.MessageFilter{AgentID: r.AgentID, RunID: r.ID, WithErrors: true,
		WithReset: true}, db.Page{Ascending: true, Limit: maxRunMessages})
	return slices.DeleteFunc(all, func(m recall.Message) bool { return m.StepID == nil }), err
}

// Given returns the results that a run's request has brought: of tools that the client ran, and of calls that it
// denied.
func (l *Loop) Given(ctx context.Context, org db.Org, r Run) ([]recall.Message, error) {
	all, err := l.Recall.Messages(ctx, org, recall.MessageFilter{AgentID: r.AgentID, RunID: r.ID, WithErrors: true,
		WithReset: true, Roles: []recall.Role{recall.Tool}}, db.Page{Ascending: true, Limit: maxRunMessages})
	return slices.DeleteFunc(all, func(m recall.Message) bool { return m.StepID != nil }), err
}

// storedFeed returns the events of a finished run.
func (l *Loop) storedFeed(ctx context.Context, org db.Org, r Run) (*Feed, error) {
	messages, err := l.produced(ctx, org, r)
	if err != nil {
		return nil, err
	}
	f := newFeed(r.ID)
	for _, m := range messages {
		f.add(Event{Message: &m})
	}
	if waiting := r.Options.Waiting; waiting != nil {
		m, err := l.Recall.Message(ctx, org, waiting.MessageID)
		if ignoreNotFound(err) != nil {
			return nil, err
		}
		if err == nil {
			f.add(waiting.of(m))
		}
	}
	e := End{StopReason: *r.StopReason, Failure: r.Failure()}
	if e.Usage, err = l.UsageOf(ctx, org, r); err != nil {
		return nil, err
	}
	f.add(Event{End: &e})
	return f, nil
}

// Find returns a run of a conversation: by its id, by the otid of a message or an approval, or else the run that is
// working. ErrNotFound if there is none.
func (l *Loop) Find(ctx context.Context, org db.Org, c recall.Conversation, id, otid string) (Run, error) {
	if id == "" && otid != "" {
		m, err := l.Recall.ByOTID(ctx, org, c.AgentKey, otid)
		if ignoreNotFound(err) != nil {
			return Run{}, err
		}
		if err != nil || m.RunID == nil {
			return l.withOTID(ctx, org, c, otid)
		}
		id = *m.RunID
	}
	if id == "" {
		return activeIn(ctx, l.DB, org, c.ID)
	}
	r, err := l.RunByID(ctx, org, id)
	if err == nil && r.Conversation != c.ID {
		err = db.ErrNotFound
	}
	if err == nil && otid != "" {
		return l.latestAttempt(ctx, org, r)
	}
	return r, err
}

// withOTID returns the newest run of a conversation that was made from approvals with this otid, or from messages sent
// with approvals. ErrNotFound if there is none.
func (l *Loop) withOTID(ctx context.Context, org db.Org, c recall.Conversation, otid string) (Run, error) {
	return db.One[Run](ctx, l.DB, runRows+` AND c.key = @conversation 
		AND (r.request -> 'otids' ? @otid OR r.request -> 'retried' ? @otid)
		ORDER BY r.created_at DESC, r.key DESC LIMIT 1`,
		pgx.StrictNamedArgs{"org": org, "conversation": c.Key, "otid": otid})
}
