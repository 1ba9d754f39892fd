package main

import (
	"context"
	"time"
)

const (
	maxRestarts  = 6           // of Postgres in a row
	restartPause = time.Second // before the second try, doubled before each further one
	stableAfter  = time.Minute // a Postgres that ran this long may again be restarted maxRestarts times
)

// keepPostgres restarts the private Postgres when it ended by itself. It returns the error after maxRestarts tries in a
// row.
func (p *process) keepPostgres(ctx context.Context) error {
	if p.pg.private == nil {
		return nil
	}
	tries := 0
	for {
		began := time.Now()
		select {
		case <-ctx.Done():
			return nil
		case <-p.pg.private.Done():
		}
		err := p.pg.private.Err()
		if time.Since(began) > stableAfter {
			tries = 0
		}
		for ; err != nil; tries++ {
			if tries == maxRestarts {
				return err
			}
			p.log.Error("Postgres ended; it is started again", "try", tries+1, "error", err)
			if tries > 0 && !wait(ctx, restartPause<<(tries-1)) {
				return nil
			}
			err = p.restart(ctx)
		}
	}
}

// restart starts Postgres again. It ignores the end of ctx: the server stops after it.
func (p *process) restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	if err := p.pg.private.Restart(ctx); err != nil {
		return err
	}
	p.log.Debug("Postgres runs again")
	return nil
}
