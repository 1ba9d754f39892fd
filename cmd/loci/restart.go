package main

import (
	"context"
	"time"

	"github.com/loci-memory/loci/db"
)

const (
	maxRestarts  = 6               // of Postgres in a row
	restartPause = time.Second     // before the second try, doubled before each further one
	stableAfter  = time.Minute     // a Postgres that ran this long may again be restarted maxRestarts times
	lookEvery    = time.Minute     // between two looks whether its files were replaced
	roomPause    = 5 * time.Second // between two tries while the disk is full
)

// keepPostgres restarts the private Postgres when it ended by itself, and when its files were replaced, as by an
// upgrade of its package. It returns the error after maxRestarts tries in a row, and where there is nothing that it
// could start. While the disk is full it goes on trying.
func (p *process) keepPostgres(ctx context.Context) error {
	if p.pg.private == nil {
		return nil
	}
	tries := 0
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		began := time.Now()
		select {
		case <-ctx.Done():
			return nil
		case <-p.pg.private.Done():
		case <-look.C:
		case <-p.pg.suspects:
		}
		if p.pg.private.Changed(ctx) {
			if err := p.replace(ctx); err != nil && p.pg.private.Err() == nil {
				return err // it was not ended, for nothing could take its place
			}
		}
		err := p.pg.private.Err()
		if time.Since(began) > stableAfter {
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

// restartWithRoom tries to start Postgres until its disk has room, or until it ends for another reason, which is the
// error. Meanwhile requests are told that there is no room.
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

// replace starts the Postgres that took the place of the one that runs. It ignores the end of ctx, as restart does.
func (p *process) replace(ctx context.Context) error {
	p.log.Warn("the files of Postgres were replaced, as by an upgrade of its package; it is started again",
		"program", p.pg.private.Program())
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer cancel()
	began := time.Now()
	if err := p.pg.private.Replace(ctx); err != nil {
		return err
	}
	p.log.Info("Postgres runs again", "program", p.pg.private.Program(), "seconds", time.Since(began).Seconds())
	return nil
}
