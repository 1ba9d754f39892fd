package loop

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Start stores a request's input and begins a run. If the input's otids show that it was stored before, Start returns
// the run that was made from it. ErrNoModel if the agent has no model; *BusyError if another run is working in the
// conversation; *PendingError if calls wait for the client and the input does not answer them.
func (l *Loop) Start(ctx context.Context, org db.Org, r Request) (Started, error) {
	s, c, err := l.newRun(ctx, org, &r)
	if err != nil {
		return Started{}, err
	}
	if err := l.settle(ctx, c.AgentID); err != nil {
		return Started{}, err
	}
	l.hold(s)
	repeats, err := l.begin(ctx, org, c, r, s.run)
	stored := err == nil
	var run Run
	if stored && repeats == "" {
		run, err = l.handOut(ctx, s)
	}
	if err != nil && (stored || errors.Is(err, db.ErrUnconfirmed)) {
		l.KeepUnconfirmed(ctx, org, c, recall.Unconfirmed{RunID: s.run.ID})
	}
	if err != nil || repeats != "" {
		l.release(s)
	}
	switch {
	case errors.Is(err, db.ErrConflict) && isTaken(err):
		return Started{}, l.busy(ctx, org, c)
	case err != nil:
		return Started{}, err
	case repeats == "":
		return Started{run, s.Feed}, nil
	}
	started, err := l.found(ctx, org, r.AgentID, repeats)
	if err == nil { // now its client knows the run; until then it must stay the last one
		err = l.Recall.Told(ctx, org, c.Key)
	}
	return started, err
}

// newRun returns a session for a request's run, and its conversation. It completes the request.
func (l *Loop) newRun(ctx context.Context, org db.Org, r *Request) (*localRun, recall.Conversation, error) {
	select {
	case <-l.stopped:
		return nil, recall.Conversation{}, db.Busy("The server is stopping: send the request again")
	default:
	}
	a, err := l.Agents.Agent(ctx, org, r.AgentID)
	if err != nil {
		return nil, recall.Conversation{}, err
	}
	c, err := l.Recall.Conversation(ctx, org, r.AgentID, r.Conversation)
	if err != nil {
		return nil, c, err
	}
	m, err := l.modelFor(a.ModelIn(c), r.Options)
	if err != nil {
		return nil, c, err
	}
	r.Options.Speaks = a.Speaks()
	r.clears = a.Clears()
	r.rules, r.Options.KeyID = readRules(a), db.Provenance{}.Or(ctx).KeyID
	r.Options.OTIDs, r.Options.Approvals, r.Options.InputSHA256 = r.otids(), r.Approvals, r.inputSHA256()
	return newLocalRun(org, Run{ID: newID("run-"), Background: r.Background, Options: r.Options}, m), c, nil
}

// handOut gives a stored run to Run, and returns it as stored.
func (l *Loop) handOut(ctx context.Context, s *localRun) (Run, error) {
	run, err := l.RunByID(ctx, s.org, s.run.ID)
	if err != nil {
		return run, err
	}
	s.run = run // from now on Run changes the session's run
	return run, l.hand(ctx, s)
}

// Prepared is a run that a transaction stores. Call Begin once it has committed, or Drop if it has not. The zero
// Prepared is no run.
type Prepared struct {
	loop    *Loop
	session *localRun
}

// Prepare stores a request's run in tx; the same transaction may have created the agent and the conversation. It
// returns the errors of Start.
func (l *Loop) Prepare(ctx context.Context, tx pgx.Tx, org db.Org, r Request) (Prepared, error) {
	inTx := l.with(tx)
	inTx.Agents = l.Agents.With(tx)
	s, c, err := inTx.newRun(ctx, org, &r)
	if err != nil {
		return Prepared{}, err
	}
	l.hold(s)
	p := Prepared{l, s}
	if _, err := inTx.begin(ctx, org, c, r, s.run); err != nil {
		p.Drop()
		return Prepared{}, err
	}
	return p, nil
}

// Begin begins the run. If that fails, a server takes the run over.
func (p Prepared) Begin(ctx context.Context) error {
	if p.session == nil {
		return nil
	}
	_, err := p.loop.handOut(ctx, p.session)
	if err != nil {
		p.Drop()
	}
	return err
}

// Drop forgets the run.
func (p Prepared) Drop() {
	if p.session != nil {
		p.loop.release(p.session)
	}
}

// hand gives a session to Run. If Run has ended, the session is interrupted, and its run is taken over later.
func (l *Loop) hand(ctx context.Context, s *localRun) error {
	select {
	case l.starts <- s:
		return nil
	case <-l.stopped:
		s.interrupt()
		l.release(s)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Loop) modelFor(handle string, o Options) (Model, error) {
	if l.Models == nil {
		return Model{}, ErrNoModel
	}
	if o.Model != nil {
		handle = *o.Model
	}
	return l.Models(handle)
}

// lockRuns is the first key of the lock for counting an organization's runs; the second key is the organization.
const lockRuns = 0x6c6f6f70

// checkCount returns an ErrTooMany if the organization has more simultaneous runs than allowed, including this one.
func (l *Loop) checkCount(ctx context.Context, tx pgx.Tx, org db.Org) error {
	if l.MaxRuns == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `SELECT pg_advisory_xact_lock($1, $2)`, lockRuns, org); err != nil {
		return db.Error(err)
	}
	n, err := db.One[int](ctx, tx, `SELECT count(*)::integer FROM runs WHERE org = $1 AND status = 'running'`, org)
	if err == nil && n > l.MaxRuns {
		err = db.TooMany("%d runs of the organization's agents are at work, which is as many as it may have: send the "+
			"request again when one has ended", l.MaxRuns)
	}
	return err
}

// isTaken reports whether an error says that another run is working in the conversation.
func isTaken(err error) bool { return db.Constraint(err) == "runs_one_at_a_time" }

// errRepeated rolls back a transaction if its input is already stored.
var errRepeated = errors.New("the input is stored already")

// begin stores a run with its input. If a run already has the input, repeats is its id.
func (l *Loop) begin(ctx context.Context, org db.Org, c recall.Conversation, r Request, run Run) (repeats string,
	err error) {
	err = db.Tx(ctx, l.DB, func(tx pgx.Tx) error {
		log := l.Recall.With(tx)
		if err := log.Lock(ctx, org, c); err != nil { // before the run refers to it, so that requests keep their order
			return err
		}
		if err := l.insert(ctx, tx, org, run, c); err != nil {
			return err
		}
		run, r := run, r // each try of the transaction changes its own copies
		var err error
		if repeats, err = l.answered(ctx, tx, org, c, r); err != nil || repeats != "" {
			return l.with(tx).repeat(ctx, org, run, &repeats, err)
		}
		resumes, again, err := l.with(tx).recognizeRetry(ctx, org, c, &r, &run)
		if repeats = again; err != nil || repeats != "" {
			return l.with(tx).repeat(ctx, org, run, &repeats, err)
		}
		if resumes {
			return l.checkCount(ctx, tx, org)
		}
		if repeats, err = l.answeredAlike(ctx, tx, org, c, &r); err != nil || repeats != "" {
			return l.with(tx).repeat(ctx, org, run, &repeats, err)
		}
		drafts, approved, err := l.with(tx).input(ctx, log, org, c, r)
		if err != nil {
			return err
		}
		for i := range drafts {
			drafts[i].RunID = &run.ID
		}
		run.Options.Approved = approved
		if r.beginsAnew() {
			if err := l.with(tx).clearView(ctx, org, c); err != nil {
				return err
			}
		}
		repeats, err = l.with(tx).appendInput(ctx, org, c, run, drafts)
		if err != nil || repeats != "" {
			return l.with(tx).repeat(ctx, org, run, &repeats, err)
		}
		return l.checkCount(ctx, tx, org)
	})
	if errors.Is(err, errRepeated) {
		err = nil
	}
	return repeats, err
}

// repeat handles a run with the same input as an earlier run; *failed is the id of that run. If the run can continue
// where the earlier one failed, repeat clears *failed and returns nil; otherwise it returns errRepeated.
func (l *Loop) repeat(ctx context.Context, org db.Org, run Run, failed *string, err error) error {
	if err != nil {
		return err
	}
	resumes, err := l.continueFailed(ctx, org, &run, *failed)
	switch {
	case err != nil:
		return err
	case !resumes:
		return errRepeated
	}
	*failed = ""
	return nil
}
