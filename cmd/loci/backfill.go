package main

import (
	"context"
	"fmt"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
)

const (
	backfillEvery = time.Minute
	callEvery     = time.Second // between two searches for texts that lack vectors
)

// connect makes the endpoint's space the active one as soon as its dimension is known. Then, until ctx ends, it queues
// the vectors that the space lacks: messages and passages are stored without vectors, and other servers may store files
// without them.
func (e *embedder) connect(ctx context.Context, d db.DB, s stores) error {
	if e.endpoint == nil {
		return nil
	}
	for {
		err := e.use(ctx, d, s)
		if err == nil {
			break
		}
		e.log.Warn("the embedding model is not in use yet", "error", err)
		if !db.Pause(ctx, retryEvery) {
			return nil
		}
	}
	for looked := time.Now(); db.Pause(ctx, callEvery); {
		if err := e.follow(ctx, s); err != nil && ctx.Err() == nil {
			e.log.Warn("it is not known whether searches switch to the next model", "error", err)
		}
		for owners, queue := range s.ownerQueues() {
			if _, err := queue.Call(ctx, s.agents.Jobs); err != nil && ctx.Err() == nil {
				e.log.Warn("vectors are not queued", "of", owners, "error", err)
			}
		}
		if time.Since(looked) > backfillEvery {
			looked = time.Now()
			if err := e.backfill(ctx, s, endpoint.IdleSpace); err != nil && ctx.Err() == nil {
				e.log.Warn("missing vectors are not queued", "error", err)
			}
		}
	}
	return nil
}

// backfill queues the vectors that the active space lacks. It takes over owners from spaces that no server has used for
// the duration idle.
func (e *embedder) backfill(ctx context.Context, s stores, idle time.Duration) error {
	batches, err := s.files.Backfill(ctx)
	if err != nil {
		return fmt.Errorf("queue the missing vectors of files: %w", err)
	}
	if batches > 0 {
		e.log.Info("missing vectors of files are queued", "batches", batches)
	}
	for owners, queue := range s.ownerQueues() {
		n, err := queue.Backfill(ctx, idle)
		if err != nil {
			return fmt.Errorf("take over the %s of another model: %w", owners, err)
		}
		if n > 0 {
			e.log.Info("the "+owners+" of another model are taken over", "number", n)
		}
	}
	return nil
}

// use makes the endpoint's space the active one. If searches have switched to the next endpoint, it uses that
// endpoint's space.
func (e *embedder) use(ctx context.Context, d db.DB, s stores) error {
	space, err := e.space(ctx, d)
	if err != nil {
		return err
	}
	next, switched, err := s.reembed.Switched(ctx, space, e.next.named)
	if err != nil {
		return err
	}
	if switched {
		e.switchTo(next)
	} else {
		if err := s.reembed.Adopt(ctx, space); err != nil {
			return err
		}
		e.endpoint.Use(space)
		e.log.Info("embedding", "model", space.Model, "dimension", space.Dimension)
	}
	return e.backfill(ctx, s, 0)
}

// follow switches to the next endpoint's space once all its vectors are made.
func (e *embedder) follow(ctx context.Context, s stores) error {
	if current, _ := e.endpoint.Space(); e.next.endpoint == nil || e.next.named(current) {
		return nil
	}
	current, _ := e.endpoint.Space()
	next, switched, err := s.reembed.Switched(ctx, current, e.next.named)
	if err != nil || !switched {
		return err
	}
	e.switchTo(next)
	return e.backfill(ctx, s, 0)
}

func (e *embedder) switchTo(space endpoint.Space) {
	e.next.endpoint.Use(space)
	e.endpoint.Switch(e.next.endpoint)
	e.log.Info("embedding with the model of LOCI_EMBEDDING_NEXT; give its settings to LOCI_EMBEDDING before the next "+
		"start", "model", space.Model, "dimension", space.Dimension)
}

// reembed makes the vectors for the next endpoint's space, whenever an operator has started that. It ends with ctx.
func (e *embedder) reembed(ctx context.Context, s stores) {
	if e.next.endpoint == nil {
		return
	}
	for db.Pause(ctx, callEvery) {
		if current, ok := e.endpoint.Space(); !ok || e.next.named(current) {
			continue
		}
		if err := s.reembed.Run(ctx, e.next.named); err != nil && ctx.Err() == nil {
			e.log.Warn("the vectors of the next model are not made; it is tried again", "error", err)
			db.Pause(ctx, retryEvery)
		}
	}
}
