package main

import (
	"context"
	"time"
)

// How a private Postgres that ended by itself is run again.
const (
	reviveTries = 6           // in a row; one that ran for reviveAfter begins anew
	revivePause = time.Second // before the second try, doubled before each further
	reviveAfter = time.Minute
)

// watchPostgres runs the private Postgres again when it ended by itself. It gives up after a few tries in a row.
func (p *process) watchPostgres(ctx context.Context) error {
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
		if time.Since(began) > reviveAfter {
			tries = 0
		}
		for ; err != nil; tries++ {
			if tries == reviveTries {
				return err
			}
			p.log.Error("Postgres ended; it is started again", "try", tries+1, "error", err)
			if tries > 0 && !wait(ctx, revivePause<<(tries-1)) {
				return nil
			}
			err = p.revive(ctx)
		}
	}
}

// revive runs Postgres again. It is not broken off: whoever stops the server waits for it.
func (p *process) revive(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startPatience)
	defer cancel()
	if err := p.pg.private.Restart(ctx); err != nil {
		return err
	}
	p.log.Warn("Postgres runs again")
	return nil
}
