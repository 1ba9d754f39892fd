package loop

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Start stores the input of a request and begins a run. If the input was stored before, by its otids, it returns the
// run that was made of it. ErrNoModel without a model for the agent, *BusyError if another run works in the
// conversation, *PendingError if calls wait for the client and the input does not answer them.
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
		l.KeepUntold(ctx, org, c, recall.Untold{RunID: s.run.ID})
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
	if err == nil { // now its client knows of the run, which stays the last one until then
		err = l.Recall.Told(ctx, org, c.Key)
	}
	return started, err
}

// newRun returns the session of a run that a request asks for, and its conversation. It completes the request.
func (l *Loop) newRun(ctx context.Context, org db.Org, r *Request) (*session, recall.Conversation, error) {
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
	r.rules, r.Options.KeyID = readRules(a), db.Provenance{}.Or(ctx).KeyID
	r.Options.OTIDs, r.Options.Approvals, r.Options.InputSHA256 = r.otids(), r.Approvals, r.inputSHA256()
	return newSession(org, Run{ID: newID("run-"), Background: r.Background, Options: r.Options}, m), c, nil
}

// handOut gives a stored run to Run, and returns it as the table has it.
func (l *Loop) handOut(ctx context.Context, s *session) (Run, error) {
	run, err := l.RunByID(ctx, s.org, s.run.ID)
	if err != nil {
		return run, err
	}
	s.run = run // Run changes the session's from now on
	return run, l.hand(ctx, s)
}

// Prepared is a run that a transaction stores. Begin must be called when that has committed, Drop if it has not. The
// zero Prepared is no run.
type Prepared struct {
	loop    *Loop
	session *session
}

// Prepare stores a run of a request in tx, which may have made its agent and conversation. Errors are those of Start.
func (l *Loop) Prepare(ctx context.Context, tx pgx.Tx, org db.Org, r Request) (Prepared, error) {
	in := l.with(tx)
	in.Agents = l.Agents.With(tx)
	s, c, err := in.newRun(ctx, org, &r)
	if err != nil {
		return Prepared{}, err
	}
	l.hold(s)
	p := Prepared{l, s}
	if _, err := in.begin(ctx, org, c, r, s.run); err != nil {
		p.Drop()
		return Prepared{}, err
	}
	return p, nil
}

// Begin begins the run. If it fails, a server takes the run over.
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

// hand gives a session to Run. If Run has ended the session is interrupted, and its run is taken over later.
func (l *Loop) hand(ctx context.Context, s *session) error {
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

// lockRuns is the first key of the lock under which an organization's runs are counted; the second is the organization.
const lockRuns = 0x6c6f6f70

// checkCount returns an ErrTooMany if the organization has more runs at once than it may, this one included.
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

// isTaken reports whether an error is that another run works in the conversation.
func isTaken(err error) bool { return db.Constraint(err) == "runs_one_at_a_time" }

// errRepeated rolls a transaction back whose input is stored already.
var errRepeated = errors.New("the input is stored already")

// begin stores a run with its input. It returns the id of the run that has the input already, if one has.
func (l *Loop) begin(ctx context.Context, org db.Org, c recall.Conversation, r Request, run Run) (repeats string,
	err error) {
	err = db.Tx(ctx, l.DB, func(tx pgx.Tx) error {
		in := l.Recall.With(tx)
		if err := in.Lock(ctx, org, c); err != nil { // before the run refers to it: requests come in their order
			return err
		}
		if err := l.insert(ctx, tx, org, run, c); err != nil {
			return err
		}
		run, r := run, r // each try of the transaction changes its own
		var err error
		if repeats, err = l.answered(ctx, tx, org, c, r); err != nil || repeats != "" {
			return l.with(tx).repeat(ctx, org, run, &repeats, err)
		}
		resumes, again, err := l.with(tx).retry(ctx, org, c, &r, &run)
		if repeats = again; err != nil || repeats != "" {
			return l.with(tx).repeat(ctx, org, run, &repeats, err)
		}
		if resumes {
			return l.checkCount(ctx, tx, org)
		}
		drafts, approved, err := l.with(tx).input(ctx, in, org, c, r)
		if err != nil {
			return err
		}
		for i := range drafts {
			drafts[i].RunID = &run.ID
		}
		run.Options.Approved = approved
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

// repeat returns errRepeated for a run whose input is that of another one, or nil and no other run if it goes on where
// that failed.
func (l *Loop) repeat(ctx context.Context, org db.Org, run Run, of *string, err error) error {
	if err != nil {
		return err
	}
	resumes, err := l.resume(ctx, org, &run, *of)
	switch {
	case err != nil:
		return err
	case !resumes:
		return errRepeated
	}
	*of = ""
	return nil
}
