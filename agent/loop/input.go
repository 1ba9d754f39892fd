package loop

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// ordered has a request's messages in the order of the log: results of calls come first.
type ordered struct {
	drafts  []recall.Draft
	places  []int // for each draft, its place in the request
	results int   // number of results; they are the first drafts
}

func inOrder(drafts []recall.Draft) (o ordered) {
	for _, results := range []bool{true, false} {
		for i, d := range drafts {
			if (d.Role == recall.Tool) == results {
				o.drafts, o.places = append(o.drafts, d), append(o.places, i)
			}
		}
		if results {
			o.results = len(o.drafts)
		}
	}
	return o
}

// locate adds to an error the place of its draft in the request.
func (o ordered) locate(err error) error {
	if e, ok := errors.AsType[*recall.DraftError](err); ok {
		return &recall.DraftError{At: o.places[e.At], Err: e.Err}
	}
	return err
}

// errTried rolls back an append that was only a trial.
var errTried = errors.New("the append was tried")

// appendInput appends the messages of a run's request, and stores which calls it approves. Messages that come with
// approvals are only tried now; they are kept with the run until the calls have results. If a run already has the
// messages, its id is returned. The loop must be in a transaction.
func (l *Loop) appendInput(ctx context.Context, org db.Org, c recall.Conversation, run Run, drafts []recall.Draft) (
	repeats string, err error) {
	o := inOrder(drafts)
	follow := len(run.Options.Approved) > 0 && o.results < len(drafts)
	if len(drafts) > 0 {
		err = db.Tx(ctx, l.DB, func(tx pgx.Tx) error {
			log := l.Recall.With(tx)
			appended, err := log.Append(ctx, org, c.AgentID, c.ID, o.drafts)
			if err == nil {
				repeats, err = repetition(ctx, log, org, c, appended)
			}
			if err == nil && follow {
				err = errTried
			}
			return err
		})
	}
	if err != nil && !errors.Is(err, errTried) || repeats != "" || len(run.Options.Approved) == 0 {
		return repeats, o.locate(err)
	}
	if follow {
		if run.Options.Following, err = l.Recall.Cleaned(ctx, org, o.drafts[o.results:]); err != nil {
			return "", err
		}
		if o.results > 0 {
			if _, err := l.Recall.Append(ctx, org, c.AgentID, c.ID, o.drafts[:o.results]); err != nil {
				return "", err
			}
		}
	}
	return "", setOptions(ctx, l.DB, org, run)
}

// follow appends the messages that follow the results of approved calls. ErrNotFound if the run has ended or belongs to
// another server.
func (w *worker) follow(ctx context.Context) error {
	run, following := w.run, w.run.Options.Following
	if len(following) == 0 {
		return nil
	}
	run.Options.Following = nil
	err := db.Tx(ctx, w.DB, func(tx pgx.Tx) error {
		_, err := w.Recall.With(tx).Append(ctx, w.org, w.agent.ID, w.conversation.ID, following)
		if err != nil {
			return err
		}
		return db.Exec(ctx, tx, `
			UPDATE runs SET request = $3 WHERE org = $1 AND id = $2 AND status = 'running' AND owner = $4`,
			w.org, run.ID, run.Options, w.Server)
	})
	if err != nil {
		return err
	}
	w.run = run
	if len(w.rules) > 0 {
		w.turn, err = w.rules.readRuleInput(ctx, w.Recall, w.org, w.conversation, lastPosition)
	}
	return err
}
