package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// tendEvery is the time between two looks at what a database needs now and then.
const tendEvery = time.Minute

// tend keeps the database in shape until ctx ends: indexes are built where there is enough to index, and what is kept for a while only
// is let go.
func (p *process) tend(ctx context.Context, store *files.Store, messages *recall.Store, passages *archival.Store) error {
	for wait(ctx, tendEvery) {
		p.tendVectors(ctx, "files", store)
		p.tendVectors(ctx, "messages", messages)
		p.tendVectors(ctx, "passages", passages)
		if _, err := db.ForgetDeleted(ctx, p.pool); err != nil && ctx.Err() == nil {
			p.log.Warn("the places of what was deleted are not forgotten", "error", err)
		}
		p.clear(ctx, "messages of deleted agents", messages)
		p.clear(ctx, "passages of deleted archives", passages)
	}
	return nil
}

// indexed is a memory with vectors.
type indexed interface {
	Index(ctx context.Context, pool *pgxpool.Pool, progress func(done, total int)) (built bool, err error)
	ClearSpaces(ctx context.Context, pool *pgxpool.Pool) (rows int, err error)
}

// tendVectors builds what search by meaning reads a large space through, and clears unused spaces away.
func (p *process) tendVectors(ctx context.Context, what string, memory indexed) {
	began, log := time.Now(), p.log.With("of", what)
	built, err := memory.Index(ctx, p.pool, func(done, total int) {
		log.Info("the vectors are being indexed; search is exact meanwhile", "done", done, "total", total)
	})
	switch {
	case err != nil && ctx.Err() == nil:
		log.Warn("the vectors are not indexed yet; search is exact, and slower", "error", err)
	case built:
		log.Info("the vectors are indexed", "seconds", int(time.Since(began).Seconds()))
	}
	if rows, err := memory.ClearSpaces(ctx, p.pool); err != nil && ctx.Err() == nil {
		log.Warn("the vectors of unused models are not cleared away", "error", err)
	} else if rows > 0 {
		log.Info("the vectors of models that were not used for a week are cleared away", "vectors", rows)
	}
}

// indexText keeps the index of grep_files up to date. Without it grep_files reads all there is, so that a failure can wait.
func (p *process) indexText(ctx context.Context, store *files.Store) error {
	for pruned := time.Now(); wait(ctx, indexEvery); {
		blocks, err := store.IndexText(ctx)
		if err == nil && time.Since(pruned) > pruneEvery {
			pruned = time.Now()
			_, err = store.PruneIndex(ctx)
		}
		if err != nil && ctx.Err() == nil {
			p.log.Warn("the index of grep_files is not up to date", "error", err)
		}
		if blocks > 0 {
			p.log.Debug("indexed text for grep_files", "blocks", blocks)
		}
	}
	return nil
}

// cleared is a memory that deletes behind what its callers delete.
type cleared interface {
	Clear(ctx context.Context) (rows int, err error)
}

// clear deletes what belongs to nobody any more, a piece at a time.
func (p *process) clear(ctx context.Context, what string, memory cleared) {
	for ctx.Err() == nil {
		rows, err := memory.Clear(ctx)
		if err != nil && ctx.Err() == nil {
			p.log.Warn("what was deleted is not cleared away", "of", what, "error", err)
		}
		if err != nil || rows == 0 {
			return
		}
	}
}
