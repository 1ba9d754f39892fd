package main

import (
	"cmp"
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/tenant/apikey"
	"github.com/loci-memory/loci/tenant/erase"
	"github.com/loci-memory/loci/tenant/quota"
	"github.com/loci-memory/loci/tenant/retention"
)

const (
	maintainEvery = time.Minute
	indexEvery    = 15 * time.Second       // between two checks for text or vectors without an index
	analyzeEvery  = 2 * time.Second        // between two checks for tables that grew
	wordsEvery    = 2 * time.Second        // between two checks for rows that the word indexes lack
	pruneEvery    = 10 * time.Minute       // between two checks for index entries of deleted files
	orgsEvery     = 5 * time.Second        // between two checks for deleted organizations
	sweepPause    = 100 * time.Millisecond // between two batches of expired rows
	eraseEvery    = 2 * time.Second        // between two checks for erasures
	usageEvery    = 5 * time.Second        // between two writes of request counts and usage
)

// adviseOwner logs once what this server cannot do because it knows no role that owns the schema.
func (p *process) adviseOwner() {
	if p.owner == nil && p.embedder.endpoint != nil {
		p.log.Warn("vectors are not indexed by this server, because its database role does not own the schema; search is " +
			"exact, and slower from 50,000 vectors on: set LOCI_DATABASE_OWNER_URL, or run 'loci migrate' from time to time")
	}
}

// analyzeTables analyzes tables that grew, until ctx ends. So searches are planned well soon after a load.
func (p *process) analyzeTables(ctx context.Context) {
	for db.Pause(ctx, analyzeEvery) {
		if _, err := db.AnalyzeGrown(ctx, p.pool); err != nil && ctx.Err() == nil {
			p.log.Warn("tables that grew are not analyzed; some statements are slower", "error", err)
		}
	}
}

// maintain runs the periodic maintenance of the database until ctx ends: it rebuilds the indexes of jobs daily where
// River may not, and deletes expired rows.
func (p *process) maintain(ctx context.Context, s stores) {
	p.adviseOwner()
	for reindexed := time.Now().UTC().YearDay(); db.Pause(ctx, maintainEvery); {
		if today := time.Now().UTC().YearDay(); today != reindexed && p.owner != nil && p.owner != p.pool {
			reindexed = today
			if err := db.Reindex(ctx, p.owner, river.ReindexerIndexNamesDefault()...); err != nil && ctx.Err() == nil {
				p.log.Warn("the indexes of jobs are not rebuilt; they may be larger than needed", "error", err)
			}
		}
		for owners, memory := range s.vectorStores() {
			p.clearVectors(ctx, owners, memory)
		}
		if _, err := db.ForgetDeleted(ctx, p.pool); err != nil && ctx.Err() == nil {
			p.log.Warn("the list positions of deleted rows are not forgotten", "error", err)
		}
		p.sweep(ctx)
		p.clear(ctx, "messages of deleted agents", s.messages)
		p.clear(ctx, "passages of deleted archives", s.passages)
	}
}

// indexVectors builds the indexes of large vector spaces until ctx ends. It builds an index only if at most one percent
// of its vectors were added since the last check, because an index would slow down a load.
func (p *process) indexVectors(ctx context.Context, s stores) {
	if p.owner == nil {
		return
	}
	for counts := map[string]int{}; db.Pause(ctx, indexEvery); {
		for owners, memory := range s.vectorStores() {
			p.indexVectorsOf(ctx, owners, memory, func(rows int) bool {
				previous := counts[owners]
				counts[owners] = rows
				return rows-previous <= rows/100
			})
		}
	}
}

// indexVectorsOf builds the index of a memory's vectors if it is missing, worthwhile, and allowed for its number of
// rows.
func (p *process) indexVectorsOf(ctx context.Context, owners string, memory vectorStore, allowed func(rows int) bool) {
	start, log := time.Now(), p.log.With("of", owners)
	built, err := memory.Index(ctx, p.owner, allowed, func(done, total int) {
		log.Info("the vectors are being indexed; search is exact meanwhile", "done", done, "total", total)
	})
	switch {
	case err != nil && ctx.Err() == nil:
		log.Warn("the vectors are not indexed yet; search is exact, and slower", "error", err)
	case built:
		log.Info("the vectors are indexed", "seconds", int(time.Since(start).Seconds()))
	}
}

// clearVectors deletes a memory's vectors in unused spaces.
func (p *process) clearVectors(ctx context.Context, owners string, memory vectorStore) {
	rows, err := memory.ClearSpaces(ctx, cmp.Or(p.owner, p.pool))
	switch {
	case err != nil && ctx.Err() == nil:
		p.log.Warn("the vectors of unused models are not deleted", "of", owners, "error", err)
	case rows > 0:
		p.log.Info("the vectors of models that were not used for a week are deleted", "of", owners, "vectors", rows)
	}
}

// indexWords keeps the word indexes up to date until ctx ends. It retries failures later, because searches read rows
// that an index lacks directly.
func (p *process) indexWords(ctx context.Context, s stores) {
	for pruned := time.Now(); db.Pause(ctx, wordsEvery); {
		prune := time.Since(pruned) > pruneEvery
		if prune {
			pruned = time.Now()
		}
		segments := p.indexWordsOf(ctx, "files", s.files, prune) + p.indexWordsOf(ctx, "messages", s.messages, prune) +
			p.indexWordsOf(ctx, "passages", s.passages, prune)
		if segments > 0 {
			p.log.Debug("indexed words", "segments", segments)
		}
	}
}

// indexWordsOf updates the word index of a memory, and returns how many segments it created.
func (p *process) indexWordsOf(ctx context.Context, memory string, store wordStore, prune bool) (segments int) {
	segments, err := store.IndexWords(ctx)
	if err == nil && prune {
		_, err = store.PruneWords(ctx)
	}
	if err != nil && ctx.Err() == nil {
		p.log.Warn("an index of words is not up to date; searches are slower", "of", memory, "error", err)
	}
	return segments
}

// reweighWords recomputes word weights from older versions of Loci, until none are left or ctx ends. It retries
// failures later, because searches still find these rows by most of their words.
func (p *process) reweighWords(ctx context.Context, s stores) {
	for _, memory := range []struct {
		what  string
		store interface {
			ReweighWords(ctx context.Context) (rows int, err error)
		}
	}{{"files", s.files}, {"messages", s.messages}, {"passages", s.passages}, {"memory files", s.memoryFiles}} {
		rows, err := memory.store.ReweighWords(ctx)
		for ; err != nil && db.Pause(ctx, indexEvery); rows, err = memory.store.ReweighWords(ctx) {
			p.log.Warn("words of an older version are not weighed anew yet", "of", memory.what, "error", err)
		}
		if rows > 0 {
			p.log.Info("the words of an older version are weighed anew", "of", memory.what, "rows", rows)
		}
	}
}

// indexText keeps the index of grep_files up to date until ctx ends. It retries failures later, because grep_files
// reads all text that the index lacks.
func (p *process) indexText(ctx context.Context, store *files.Store) {
	for pruned := time.Now(); db.Pause(ctx, indexEvery); {
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
}

// sweep deletes what has expired by an organization's retention settings.
func (p *process) sweep(ctx context.Context) {
	store := retention.Store{DB: p.pool, Pause: sweepPause}
	deleted, err := store.Sweep(ctx)
	if err != nil && ctx.Err() == nil {
		p.log.Warn("not all that is too old is deleted yet", "error", err)
	}
	for table, rows := range deleted {
		if rows > 0 {
			p.log.Info("rows that are too old are deleted", "table", table, "rows", rows)
		}
	}
}

// erase runs erasures until ctx ends.
func (p *process) erase(ctx context.Context, store *erase.Store) {
	for db.Pause(ctx, eraseEvery) {
		if _, err := store.Run(ctx); err != nil && ctx.Err() == nil {
			p.log.Warn("an erasure is not done yet; it is tried again", "error", err)
		}
	}
}

// clearOrganizations deletes the data of deleted organizations until ctx ends.
func (p *process) clearOrganizations(ctx context.Context) {
	for db.Pause(ctx, orgsEvery) {
		rows := map[string]int{}
		_, err := p.keys.Clear(ctx, func(o apikey.Organization, _ string, n int) { rows[o.ID] += n })
		if err != nil && ctx.Err() == nil {
			p.log.Warn("the data of deleted organizations is not deleted yet", "error", err)
		}
		for id, n := range rows {
			p.log.Info("data of a deleted organization is deleted", "organization", id, "rows", n)
		}
	}
}

// clearer deletes rows of deleted owners in batches. rows is 0 when none are left.
type clearer interface {
	Clear(ctx context.Context) (rows int, err error)
}

// clear calls Clear until no rows are left.
func (p *process) clear(ctx context.Context, subject string, memory clearer) {
	for ctx.Err() == nil {
		rows, err := memory.Clear(ctx)
		if err != nil && ctx.Err() == nil {
			p.log.Warn("rows of deleted owners are not deleted", "of", subject, "error", err)
		}
		if err != nil || rows == 0 {
			return
		}
	}
}

// requests returns a counter of requests by organization.
func (p *process) requests() *quota.Requests {
	return &quota.Requests{DB: p.pool, Every: usageEvery, Failed: func(err error) {
		p.log.Debug("requests are not counted", "error", err) // for example, the database is read-only
	}}
}

// countUsage writes request counts, and merges usage into few rows, until ctx ends and once more afterwards.
func (p *process) countUsage(ctx context.Context, requests *quota.Requests) {
	quotas := quota.Store{DB: p.pool}
	for db.Pause(ctx, usageEvery) {
		requests.Flush(ctx)
		if err := quotas.Fold(ctx); err != nil && ctx.Err() == nil {
			p.log.Debug("the usage of organizations stays in many rows", "error", err)
		}
	}
	requests.Flush(context.WithoutCancel(ctx))
}

const (
	freeEvery = 10 * time.Second
	freeBytes = 16 << 20 // smaller amounts are not returned
)

// freeMemory returns unused memory to the system while no job runs, until ctx ends. The Go runtime alone would keep the
// memory for minutes.
func (p *process) freeMemory(ctx context.Context) {
	unused := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}}
	for db.Pause(ctx, freeEvery) {
		if metrics.Read(unused); p.inFlight.Empty() && unused[0].Value.Uint64() > freeBytes {
			debug.FreeOSMemory()
		}
	}
}
