package agent

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// NextFlush returns the prompt of a silent turn of a conversation's model if the agent wants one now, or one is open;
// otherwise nil. If a checkpoint has ended, NextFlush does the compaction that follows it.
func (s *Store) NextFlush(ctx context.Context, org db.Org, target PromptTarget, byCaller bool) (*StoredPrompt, error) {
	a, err := s.Agent(ctx, org, target.AgentID)
	if err != nil || !a.Settings.Flush.on() {
		return nil, err
	}
	c, err := s.Recall.Conversation(ctx, org, target.AgentID, target.Conversation)
	if err != nil || tooLong(c) {
		return nil, err
	}
	f, err := s.flushOf(ctx, org, c)
	switch {
	case errors.Is(err, db.ErrNotFound) && !s.mayFlush(ctx, org, a.in(c), c):
		return nil, nil
	case errors.Is(err, db.ErrNotFound):
		f, err = s.beginFlush(ctx, org, a, target, byCaller)
		if err != nil || f.ID == "" {
			return nil, err
		}
	case err != nil:
		return nil, err
	}
	if f.Status != FlushOpen {
		return nil, s.settle(ctx, org, c, f)
	}
	if f.ByCaller != byCaller {
		return nil, nil
	}
	p, ended, err := s.flushPrompt(ctx, org, a, target, f)
	if err != nil || ended == "" {
		return p, err
	}
	if f, err = s.EndFlush(ctx, org, f, ended, ""); err != nil {
		return nil, err
	}
	if f.Status == FlushOpen { // another request has added an answer
		return s.NextFlush(ctx, org, target, byCaller)
	}
	return nil, s.settle(ctx, org, c, f)
}

// mayFlush reports, by an estimate that may be too low, whether a conversation may be large enough for a flush.
func (s *Store) mayFlush(ctx context.Context, org db.Org, a Agent, c recall.Conversation) bool {
	calibrated, err := s.calibrationOf(ctx, org, a.model())
	if err != nil {
		return true // the count that follows reports the error
	}
	settings, err := a.compactionSettings(nil)
	used := max(roughly(calibrated).Of(c.Estimate()), c.Reported)
	return err != nil || a.Settings.Flush.due(int(float64(used)/checkShare), a.AssumedWindow(), settings) != ""
}

// beginFlush begins a flush if one is due, or returns the one that another request has begun. The flush has no id if
// none is due.
func (s *Store) beginFlush(ctx context.Context, org db.Org, a Agent, target PromptTarget, byCaller bool) (f Flush,
	err error) {
	p, err := s.assembleAt(ctx, org, target)
	if err != nil || len(p.Pending) > 0 || p.unread.Count > 0 {
		return f, err
	}
	reason, tools := a.Settings.Flush.due(p.Tokens.Total, p.window(), p.settings), a.flushTools(target)
	if reason == "" || len(tools) == 0 || !saidSomething(p.Messages) {
		return f, nil
	}
	if reason == ForTokens {
		if soon, err := s.flushedLately(ctx, org, p.Conversation); err != nil || soon {
			return f, err
		}
	}
	return s.storeFlush(ctx, org, p.Conversation, a, flushBegin{reason, tools, byCaller})
}

// flushBegin says why and how a flush begins.
type flushBegin struct {
	reason   string
	tools    []string
	byCaller bool
}

// saidSomething reports whether there is anything to write down.
func saidSomething(messages []recall.Message) bool {
	return slices.ContainsFunc(messages, func(m recall.Message) bool { return m.Role == recall.User })
}

// flushedLately reports whether the conversation has had too few messages since its last flush for another one because
// of its tokens.
func (s *Store) flushedLately(ctx context.Context, org db.Org, c recall.Conversation) (bool, error) {
	return db.One[bool](ctx, s.DB, `
		SELECT EXISTS (
			SELECT FROM flushes WHERE org = $1 AND conversation_key = $2 AND position > $3)`,
		org, c.Key, c.Messages-minFlushGap)
}

// storeFlush stores the beginning of a flush: its row, and a message with the instructions.
func (s *Store) storeFlush(ctx context.Context, org db.Org, c recall.Conversation, a Agent, b flushBegin) (f Flush,
	err error) {
	settings := *a.Settings.Flush
	draft := recall.Draft{Role: recall.System, Purpose: recall.ForFlush,
		Content: []recall.Part{{Type: recall.Text, Text: settings.flushText(b.tools)}}}
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		inTx := s.With(tx)
		appended, err := inTx.Recall.Append(ctx, org, c.AgentID, c.ID, []recall.Draft{draft}) // this locks the conversation
		if err != nil {
			return err
		}
		inserted, err := tx.Exec(ctx, `
			INSERT INTO flushes (org, agent_key, conversation_key, view, kind, reason, by_caller, position, deadline)
			SELECT org, agent_key, key, frame, @kind, @reason, @caller, @position, now() + make_interval(secs => @time)
			FROM conversations WHERE org = @org AND key = @conversation AND frame = @view
			ON CONFLICT DO NOTHING`, pgx.StrictNamedArgs{"org": org, "conversation": c.Key, "view": c.Version,
			"kind": settings.Mode, "reason": b.reason, "caller": b.byCaller, "position": appended[0].Position,
			"time": settings.time().Seconds()})
		if err == nil && inserted.RowsAffected() == 0 {
			return errFlushed
		}
		if err != nil {
			return db.Error(err)
		}
		f, err = inTx.flushOf(ctx, org, c)
		return err
	})
	if errors.Is(err, errFlushed) {
		f, err = s.flushOf(ctx, org, c)
		if errors.Is(err, db.ErrNotFound) { // the view has changed
			return Flush{}, nil
		}
	}
	return f, err
}

// errFlushed rolls back the beginning of a flush that another request has already begun.
var errFlushed = errors.New("the view has a flush already")

// flushPrompt returns the prompt of an open flush. If there is nothing more to ask, p is nil and ended is the status
// with which the flush ends. If the turn does not fit otherwise, the newest messages are left out, because they stay in
// view after a compaction.
func (s *Store) flushPrompt(ctx context.Context, org db.Org, a Agent, target PromptTarget, f Flush) (p *StoredPrompt,
	ended string, err error) {
	settings := *a.Settings.Flush
	target.flush, target.OnlyTools = f.Position, a.flushTools(target)
	if f.Kind == Checkpoint {
		target.OnlyTools = []string{checkpointTool}
		target.must = checkpointTool
	}
	if p, err = s.flushCalls(ctx, org, a, target, f); err != nil || p != nil {
		return p, "", err
	}
	if len(target.OnlyTools) == 0 || !settings.on() || f.Steps >= settings.steps() || f.Kind == Checkpoint && f.Calls > 0 {
		return nil, f.outcome(), nil
	}
	assembled, fits, err := s.assembleFlush(ctx, org, target)
	if err != nil || !fits {
		return nil, FlushSkipped, err
	}
	out, err := assembled.storable()
	out.Purpose, out.Flush = recall.ForFlush, new(s.FlushTurnOf(a, f))
	out.Flush.Tools = target.OnlyTools
	return &out, "", err
}

// flushCalls returns a prompt without a request that lists the flush's calls without a result; nil if there are none.
func (s *Store) flushCalls(ctx context.Context, org db.Org, a Agent, target PromptTarget, f Flush) (
	*StoredPrompt, error) {
	c, err := s.Recall.Conversation(ctx, org, target.AgentID, target.Conversation)
	if err != nil {
		return nil, err
	}
	position, err := s.Recall.OpenAfter(ctx, org, c, f.Position)
	if err != nil || position == 0 {
		return nil, err
	}
	return &StoredPrompt{Flush: new(s.FlushTurnOf(a, f)), Pending: []chat.PendingCall{{Position: position}}}, nil
}

// FlushTurnOf returns a flush of an agent with the instructions and the tools for its model.
func (s *Store) FlushTurnOf(a Agent, f Flush) FlushTurn {
	var settings FlushSettings
	if a.Settings.Flush != nil {
		settings = *a.Settings.Flush
	}
	t := FlushTurn{Flush: f, Tools: a.flushTools(PromptTarget{}), StepsLeft: settings.steps() - f.Steps}
	if f.Kind == Checkpoint {
		t.Tools, t.Must = []string{checkpointTool}, checkpointTool
	}
	t.Instructions = settings.flushText(t.Tools)
	return t
}

// checkpointTool is the tool that a checkpoint's model must call.
const checkpointTool = "update_working_memory"

// assembleFlush assembles the prompt of a flush, and reports whether it fits.
func (s *Store) assembleFlush(ctx context.Context, org db.Org, target PromptTarget) (p Prompt, fits bool, err error) {
	for range maxAttempts {
		if p, err = s.assembleAt(ctx, org, target); err != nil {
			return p, false, err
		}
		if p.Tokens.Total+tokens.PerMessage <= p.settings.Most(p.window()) {
			return p, true, nil
		}
		before, ok := lastExchange(p.Messages)
		if !ok {
			return p, false, nil
		}
		target.before = before
	}
	return p, false, nil
}

// lastExchange returns the position of the newest part of a conversation that its flush can leave out: a message of the
// user, or an answer with its results.
func lastExchange(messages []recall.Message) (position int, ok bool) {
	begins := 0
	for i, m := range messages {
		if m.Purpose == "" && (m.Role == recall.User || m.Role == recall.Assistant) {
			begins++
			position = messages[i].Position
		}
	}
	return position, begins > 1
}

// FlushOfCaller returns the flush of a conversation's present view that was handed to a program's own loop. ErrConflict
// if there is none.
func (s *Store) FlushOfCaller(ctx context.Context, org db.Org, c recall.Conversation) (Flush, error) {
	f, err := s.flushOf(ctx, org, c)
	if errors.Is(err, db.ErrNotFound) || err == nil && (!f.ByCaller || f.Status != FlushOpen) {
		err = db.Conflict("No silent turn is open in conversation %s: it has ended, or none was handed out. Nothing was "+
			"stored; ask for the next prompt", c.ID)
	}
	return f, err
}
