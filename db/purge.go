package db

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// The most and the fewest rows that a Purge deletes with one statement.
const (
	maxPurgeRows = 1000
	minPurgeRows = 10
)

// How long a statement of a Purge should take. If it takes less than shortPurge, the next one deletes more rows; if it
// takes more than longPurge, fewer.
const (
	shortPurge = 50 * time.Millisecond
	longPurge  = 250 * time.Millisecond
)

// Purge deletes the rows of a deleted organization.
type Purge struct {
	DB       DB
	Org      Org
	Progress func(table string, rows int) // called after each batch; may be nil

	rows int // size of the next batch
}

// Run deletes everything that belongs to the organization: its jobs, and its rows in every table with a column org.
// Each batch of at most 1,000 rows is a transaction of its own. After each batch Run waits as long as the batch took,
// so that other statements can go on. After an interruption the next Run continues; two at once share the work. done
// reports that nothing is left and nothing can be added. While a job of the organization runs, done is false, because
// the job may add rows.
func (p *Purge) Run(ctx context.Context) (done bool, err error) {
	tables, err := p.tables(ctx)
	if err != nil {
		return false, err
	}
	p.rows = minPurgeRows
	for found := true; found; {
		if found, err = p.round(ctx, tables); err != nil {
			return false, fmt.Errorf("delete the rows of a deleted organization: %w", Error(err))
		}
	}
	working, err := One[bool](ctx, p.DB, `
		SELECT EXISTS (SELECT FROM river_job WHERE args @> jsonb_build_object('org', $1::integer))`, p.Org)
	if err != nil || working {
		return false, err
	}
	tag, err := p.DB.Exec(ctx, `DELETE FROM organizations WHERE org = $1 AND deleted_at IS NOT NULL`, p.Org)
	return err == nil && tag.RowsAffected() > 0, Error(err)
}

// round deletes the jobs and then the rows of every table. It reports whether there were any, because triggers and
// running jobs may add rows to tables that are done already. Its statements select the rows into an array: Postgres may
// run a subquery of IN once per row, and would lock and delete other rows each time.
func (p *Purge) round(ctx context.Context, tables []string) (found bool, err error) {
	any, err := p.all(ctx, "river_job", `
		DELETE FROM river_job WHERE id = ANY (ARRAY(
			SELECT id FROM river_job WHERE args @> jsonb_build_object('org', $1::integer) AND state <> 'running'
			LIMIT $2 %s))`)
	for i := 0; err == nil && i < len(tables); i++ {
		name := pgx.Identifier{tables[i]}.Sanitize()
		var some bool
		if self := traces[tables[i]].self; self != "" {
			_, err = p.all(ctx, tables[i], `
				UPDATE `+name+` SET `+self+` = NULL WHERE org = $1 AND ctid = ANY (ARRAY(
					SELECT ctid FROM `+name+` WHERE org = $1 AND `+self+` IS NOT NULL LIMIT $2 %s))`)
			if err != nil {
				break
			}
		}
		some, err = p.all(ctx, tables[i], `
			DELETE FROM `+name+` WHERE org = $1 AND ctid = ANY (ARRAY(
				SELECT ctid FROM `+name+` WHERE org = $1 LIMIT $2 %s))`)
		any = any || some
	}
	return any, err
}

// all deletes all rows of a table. Rows that others have locked come last, when all waits for them. No row may be left,
// because it would be deleted together with the row it refers to, in a transaction that is larger than a batch. In sql,
// %s is the locking clause.
func (p *Purge) all(ctx context.Context, table, sql string) (found bool, err error) {
	for _, locking := range []string{"FOR UPDATE SKIP LOCKED", "FOR UPDATE"} {
		some, err := p.batches(ctx, table, fmt.Sprintf(sql, locking))
		if found = found || some; err != nil {
			return found, err
		}
	}
	return found, nil
}

// batches repeats a statement that deletes at most $2 rows until it finds none. It reports whether it found any.
func (p *Purge) batches(ctx context.Context, table, sql string) (found bool, err error) {
	for {
		began := time.Now()
		tag, err := p.DB.Exec(ctx, sql, p.Org, p.rows)
		if err != nil || tag.RowsAffected() == 0 {
			return found, err
		}
		found = true
		if p.Progress != nil {
			p.Progress(table, int(tag.RowsAffected()))
		}
		took := time.Since(began)
		switch {
		case took < shortPurge:
			p.rows = min(2*p.rows, maxPurgeRows)
		case took > longPurge:
			p.rows = max(p.rows/2, minPurgeRows)
		}
		select {
		case <-ctx.Done():
			return found, ctx.Err()
		case <-time.After(took):
		}
	}
}

// tables returns the tables with a column org. A table comes after the tables that refer to it, so that no reference
// deletes more rows than a batch has.
func (p *Purge) tables(ctx context.Context) (ordered []string, err error) {
	all, err := All[struct {
		Name      string   `db:"name"`
		Referring []string `db:"referring"` // tables that refer to it
	}](ctx, p.DB, `
		SELECT t.relname::text AS name, ARRAY(
			SELECT r.relname::text FROM pg_constraint c JOIN pg_class r ON r.oid = c.conrelid
			JOIN pg_attribute b ON b.attrelid = r.oid AND b.attname = 'org' AND NOT b.attisdropped
			WHERE c.confrelid = t.oid AND c.contype = 'f' AND c.conrelid <> t.oid
		) AS referring
		FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid AND a.attname = 'org' AND NOT a.attisdropped
		WHERE t.relnamespace = current_schema()::regnamespace AND t.relkind IN ('r', 'p') AND t.relname <> 'organizations'
		ORDER BY t.relname`)
	for err == nil && len(ordered) < len(all) {
		before := len(ordered)
		for _, t := range all {
			referring := slices.DeleteFunc(slices.Clone(t.Referring), func(r string) bool { return slices.Contains(ordered, r) })
			if len(referring) == 0 && !slices.Contains(ordered, t.Name) {
				ordered = append(ordered, t.Name)
			}
		}
		if len(ordered) == before {
			return nil, fmt.Errorf("the tables refer to each other in a circle; only %v do not", ordered)
		}
	}
	return ordered, err
}
