package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/handover"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/subagent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction/replay"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/tenant/erase"
)

// stores are the memories and agents of a server.
type stores struct {
	files    *files.Store
	messages *recall.Store
	blocks   *block.Store
	passages *archival.Store
	working  *working.Store
	agents   *agent.Store
	handover *handover.Store
	replays  *replay.Store
	tools    *tool.Set
	loop     *loop.Loop

	memoryFiles *memoryfile.Store
	children    *subagent.Store
	erasures    *erase.Store
	reembed     *endpoint.Reembed
}

// ownerQueue is the interface of *endpoint.Queue.
type ownerQueue interface {
	vectorStore
	Call(ctx context.Context, jobs *river.Client[pgx.Tx]) (int, error)
	Backfill(ctx context.Context, idle time.Duration) (owners int, err error)
	Queues() map[string]river.QueueConfig
	Work(workers *river.Workers)
}

// ownerQueues returns the queues of vectors, by the plural name of their owners.
func (s stores) ownerQueues() map[string]ownerQueue {
	return map[string]ownerQueue{"conversations": s.messages.Queue(), "archives": s.passages.Queue(),
		"memory trees": s.memoryFiles.Queue()}
}

// vectorStore is a memory that has vectors.
type vectorStore interface {
	Index(ctx context.Context, pool *pgxpool.Pool, may func(rows int) bool,
		progress func(done, total int)) (built bool, err error)
	ClearSpaces(ctx context.Context, pool *pgxpool.Pool) (rows int, err error)
}

// vectorStores returns the memories that have vectors, by the plural name of their owners.
func (s stores) vectorStores() map[string]vectorStore {
	all := map[string]vectorStore{"files": s.files}
	for owners, queue := range s.ownerQueues() {
		all[owners] = queue
	}
	return all
}

// wordStore is a memory that has a word index.
type wordStore interface {
	IndexWords(ctx context.Context) (segments int, err error)
	PruneWords(ctx context.Context) (segments int, err error)
}
