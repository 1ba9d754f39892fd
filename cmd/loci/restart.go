package main

import (
	"context"
	"time"

	"github.com/loci-memory/loci/db"
)

const (
	maxRestarts  = 6               // attempts in a row
	restartPause = time.Second     // before the second attempt; doubled before each further one
	stableAfter  = time.Minute     // after running this long, Postgres may be restarted maxRestarts times again
	lookEvery    = time.Minute     // between two checks whether the files were replaced
	roomPause    = 5 * time.Second // between two attempts while the disk is full
)

// keepPostgres restarts the private Postgres if it ended by itself, or if its files were replaced, for example by an
// upgrade of its package. It returns an error after maxRestarts attempts in a row, or if there is nothing to start.
// While the disk is full it keeps trying.
func (p *process) keepPostgres(ctx context.Context) error {
	if p.pg.private == nil {
		return nil
	}
	tries := 0
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		start := time.Now()
		select {
		case <-ctx.Done():
			return nil
		case <-p.pg.private.Done():
		case <-look.C:
		case <-p.pg.suspects:
		}
		if p.pg.private.Changed(ctx) {
			if err := p.replace(ctx); err != nil && p.pg.private.Err() == nil {
				return err // it was not ended, because nothing could replace it
			}
		}
		err := p.pg.private.Err()
		if time.Since(start) > stableAfter {
			tries = 0
		}
		for ; err != nil; tries++ {
			if db.IsFull(err) {
				if err = p.restartWithRoom(ctx, err); err == nil || ctx.Err() != nil {
					break
				}
			}
			if tries == maxRestarts {
				return err
			}
			p.log.Error("Postgres ended; it is started again", "try", tries+1, "error", err)
			if tries > 0 && !db.Pause(ctx, restartPause<<(tries-1)) {
				return nil
			}
			err = p.restart(ctx)
		}
	}
}

// restartWithRoom tries to start Postgres until its disk has room. If Postgres then ends for another reason, that is
// the error. Meanwhile requests are answered that there is no room.
func (p *process) restartWithRoom(ctx context.Context, full error) error {
	p.log.Error("Postgres ended, because its disk is full; it is started when there is room", "error", full)
	p.pg.full.Store(&full)
	defer p.pg.full.Store(nil)
	for db.Pause(ctx, roomPause) {
		if err := p.restart(ctx); !db.IsFull(err) {
			return err
		}
	}
	return nil
}

// restart starts Postgres again. It finishes even if ctx ends, because the server stops Postgres afterwards.
func (p *process) restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	if err := p.pg.private.Restart(ctx); err != nil {
		return err
	}
	p.log.Debug("Postgres runs again")
	return nil
}

// replace ends the running Postgres and starts the one that replaced its files. It finishes even if ctx ends, as
// restart does.
func (p *process) replace(ctx context.Context) error {
	p.log.Warn("the files of Postgres were replaced, as by an upgrade of its package; it is started again",
		"program", p.pg.private.Program())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	start := time.Now()
	if err := p.pg.private.Replace(ctx); err != nil {
		return err
	}
	p.log.Info("Postgres runs again", "program", p.pg.private.Program(), "seconds", time.Since(start).Seconds())
	return nil
}
