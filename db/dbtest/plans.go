package dbtest

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Plans is a database that records how Postgres plans the queries that it runs. Tests give it to a store in place of
// the pool.
type Plans struct {
	db.DB
	t     testing.TB
	mu    sync.Mutex
	plans []plan
}

type plan struct{ sql, text string }

// NewPlans returns a recorder in front of d.
func NewPlans(t testing.TB, d db.DB) *Plans { return &Plans{DB: d, t: t} }

// Query implements db.DB.
func (p *Plans) Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error) {
	p.record(ctx, &pgx.QueuedQuery{SQL: sql, Arguments: args})
	return p.DB.Query(ctx, sql, args...)
}

// SendBatch implements db.DB. It plans the queries of the batch under the settings that the batch makes.
func (p *Plans) SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults {
	p.record(ctx, b.QueuedQueries...)
	return p.DB.SendBatch(ctx, b)
}

func (p *Plans) record(ctx context.Context, queries ...*pgx.QueuedQuery) {
	err := pgx.BeginFunc(ctx, p.DB, func(tx pgx.Tx) error {
		for _, q := range queries {
			if strings.Contains(q.SQL, "set_config") {
				if _, err := tx.Exec(ctx, q.SQL, q.Arguments...); err != nil {
					return err
				}
				continue
			}
			lines, err := db.All[string](ctx, tx, "EXPLAIN "+q.SQL, q.Arguments...)
			if err != nil {
				return err
			}
			p.mu.Lock()
			p.plans = append(p.plans, plan{q.SQL, strings.Join(lines, "\n")})
			p.mu.Unlock()
		}
		return nil
	})
	if err != nil {
		p.t.Fatalf("plan a query: %v", err)
	}
}

// Take returns the plans of the queries that contain a text, and forgets all plans.
func (p *Plans) Take(text string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var found []string
	for _, q := range p.plans {
		if strings.Contains(q.sql, text) {
			found = append(found, q.text)
		}
	}
	p.plans = nil
	return strings.Join(found, "\n\n")
}

// ReadByKeys checks the plans of the queries that contain a text, and forgets all plans. The plans must contain each of
// uses (indexes or their conditions), and must not compare rows with each other.
func (p *Plans) ReadByKeys(text string, uses ...string) {
	p.t.Helper()
	plan := p.Take(text)
	for _, use := range uses {
		if !strings.Contains(plan, use) {
			p.t.Errorf("%s is not used:\n%s", use, plan)
		}
	}
	for _, node := range []string{"Join Filter", "Seq Scan", "Hash Join", "Merge Join"} {
		if strings.Contains(plan, node) {
			p.t.Errorf("the rows are read by a %s:\n%s", node, plan)
		}
	}
}
