package loop

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
)

// Adopt takes over an organization's runs if their server is gone, or if they were interrupted on this server; with an
// empty org, the runs of every organization. Run then works on them.
func (l *Loop) Adopt(ctx context.Context, org db.Org) {
	if err := l.settle(ctx, ""); err != nil && ctx.Err() == nil {
		l.Log.WarnContext(ctx, "what requests stored without telling it is not noted yet", "error", err)
	}
	orphans, err := l.orphans(ctx, org)
	if err != nil && ctx.Err() == nil {
		l.Log.WarnContext(ctx, "runs that were interrupted do not go on yet", "error", err)
	}
	for _, o := range orphans {
		s := newLocalRun(o.Org, Run{ID: o.ID}, Model{})
		if !l.hold(s) {
			continue
		}
		if err := l.takeOver(ctx, s, o); err != nil {
			l.release(s)
			if ctx.Err() == nil && ignoreNotFound(err) != nil {
				l.Log.WarnContext(ctx, "a run that was interrupted does not go on yet", "run", o.ID, "error", err)
			}
		}
	}
}

func (l *Loop) takeOver(ctx context.Context, s *localRun, o orphan) (err error) {
	err = db.Exec(ctx, l.DB, `
		UPDATE runs SET owner = $4 WHERE org = $1 AND id = $2 AND owner = $3 AND status = 'running'`,
		o.Org, o.ID, o.Owner, l.Server)
	if err != nil {
		return err
	}
	if s.run, err = l.RunByID(ctx, o.Org, o.ID); err != nil {
		return err
	}
	go func() { _ = l.hand(ctx, s) }() // Run receives it after adopt, or ends with ctx
	return nil
}

// orphans lists running runs, of all organizations, that have no server: their server is gone, or they are this
// server's and it does not work on them.
func (l *Loop) orphans(ctx context.Context, org db.Org) ([]orphan, error) {
	running, err := db.All[orphan](ctx, l.DB, `
		SELECT org, id, owner FROM runs WHERE status = 'running' AND ($1 = 0 OR org = $1) ORDER BY org, key`, org)
	if err != nil {
		return nil, err
	}
	if org == 0 {
		l.keepHalts(l.Server, running)
	}
	if len(running) == 0 {
		return nil, nil
	}
	var owners []string
	for _, o := range running {
		owners = append(owners, o.Owner)
	}
	dead, err := queue.Dead(ctx, l.DB, owners)
	if err != nil {
		return nil, err
	}
	gone := map[string]bool{l.Server: true}
	for _, id := range dead {
		gone[id] = true
	}
	var orphans []orphan
	for _, o := range running {
		if gone[o.Owner] && l.held(o.ID) == nil && !l.rests(o.ID) {
			orphans = append(orphans, o)
		}
	}
	return orphans, nil
}
