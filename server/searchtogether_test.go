package server_test

import (
	"context"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// meeting traces statements. Each statement that reads one of its tables waits until all tables are being read.
type meeting struct {
	tables []*regexp.Regexp

	mu    sync.Mutex
	begun map[*regexp.Regexp]bool
	all   chan struct{}
	alone bool // a statement waited in vain
}

func newMeeting(tables ...string) *meeting {
	m := &meeting{begun: map[*regexp.Regexp]bool{}, all: make(chan struct{})}
	for _, table := range tables {
		m.tables = append(m.tables, regexp.MustCompile(`(FROM|JOIN)\s+`+table+`\b`))
	}
	return m
}

// wait waits for the others if a statement reads one of the tables.
func (m *meeting) wait(sql string) {
	m.mu.Lock()
	reads := false
	for _, table := range m.tables {
		if table.MatchString(sql) {
			reads = true
			if m.begun[table] = true; len(m.begun) == len(m.tables) {
				m.tables = nil // later statements need not wait
				close(m.all)
			}
		}
	}
	m.mu.Unlock()
	if !reads {
		return
	}
	select {
	case <-m.all:
	case <-time.After(patience):
		m.mu.Lock()
		defer m.mu.Unlock()
		m.alone, m.tables = true, nil
	}
}

// meetings holds meetings, which begin when they are set.
type meetings struct {
	mu  sync.Mutex
	set []*meeting
}

func (m *meetings) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	m.mu.Lock()
	set := m.set
	m.mu.Unlock()
	for _, one := range set {
		one.wait(q.SQL)
	}
	return ctx
}

func (m *meetings) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// The memories of a layer are searched at the same time. If one search waited for another to end, the two would never
// meet.
func TestOneSearchSearchesTheMemoriesAtTheSameTime(t *testing.T) {
	t.Parallel()
	var traced meetings
	pool, err := db.ConnectWith(t.Context(), dbtest.SharedURL(t), db.Options{Tracer: &traced})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	c := serverClientOn(t, pool, dbtest.NewOrg(t, pool))
	agent := remembering(c)
	near := newMeeting("working_memories", "agent_blocks", "agent_memory_trees")
	far := newMeeting("passages", "(files|chunks)", "messages")
	traced.mu.Lock()
	traced.set = []*meeting{near, far}
	traced.mu.Unlock()
	if got := c.searchMemory(agent, "query=zebra").Hits; len(got) < 5 {
		t.Errorf("got %d hits: %v", len(got), got)
	}
	for layer, m := range map[string]*meeting{"near": near, "far": far} {
		if m.alone || m.tables != nil {
			t.Errorf("the %s memories are not searched together: only %v were", layer, m.begun)
		}
	}
}
