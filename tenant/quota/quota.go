// Package quota keeps the quotas of organizations, and reports their usage: agents, stored bytes, and requests per
// month. Package db refuses agents and bytes beyond a quota; Requests counts and refuses requests.
//
// Its files, in order: quota.go has the quotas and sums up the usage; requests.go counts requests;
// asking.go counts those that the server pays a provider for; usage.go reports the
// usage.
package quota

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Store keeps the quotas of organizations.
type Store struct{ DB db.DB }

// Limits are the quotas of an organization; nil means no limit.
type Limits struct {
	Agents      *int64 `json:"agents" minimum:"0" doc:"Agents; null is no limit."`
	StoredBytes *int64 `json:"stored_bytes" minimum:"0" doc:"Bytes that usage counts; null is no limit."`
	Requests    *int64 `json:"requests_per_month" minimum:"0" doc:"Requests of a calendar month in UTC; null is no limit."`

	// Of the gateway, in a day in UTC, with the server's own credential.
	GatewayRequests *int64 `json:"gateway_requests_per_day" minimum:"0" doc:"That the server pays for; null is no limit."`
	GatewayTokens   *int64 `json:"gateway_tokens_per_day" minimum:"0" doc:"That the server pays for; null is no limit."`
}

// most is the largest quota.
const most = 9_000_000_000_000_000 // JSON numbers hold it exactly

// Check returns *db.FieldError if a number is out of range.
func (l Limits) Check() error {
	for _, f := range []struct {
		name string
		n    *int64
	}{{db.QuotaAgents, l.Agents}, {db.QuotaStoredBytes, l.StoredBytes}, {db.QuotaRequests, l.Requests},
		{db.QuotaGatewayRequests, l.GatewayRequests}, {db.QuotaGatewayTokens, l.GatewayTokens}} {
		if f.n != nil && (*f.n < 0 || *f.n > most) {
			return &db.FieldError{Field: f.name, Rule: fmt.Sprintf("it is %d; it must be from 0 to %d, or null for no limit",
				*f.n, most)}
		}
	}
	return nil
}

// Limits returns the quotas of an organization.
func (s *Store) Limits(ctx context.Context, org db.Org) (Limits, error) {
	l, err := db.One[Limits](ctx, s.DB, limitsOf, org)
	if errors.Is(err, db.ErrNotFound) {
		err = nil
	}
	return l, err
}

const limitsOf = `SELECT agents, stored_bytes, requests_per_month AS requests,
	gateway_requests_per_day AS gateway_requests, gateway_tokens_per_day AS gateway_tokens
	FROM quotas WHERE org = $1`

// Update changes an organization's quotas. If the usage is above a new quota, it stays but cannot grow. *db.FieldError
// if a number is out of range. change may be called twice.
func (s *Store) Update(ctx context.Context, org db.Org, change func(*Limits)) (updated Limits, err error) {
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		if _, err := db.One[db.Org](ctx, tx, `
			SELECT org FROM organizations WHERE org = $1 AND deleted_at IS NULL`, org); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `INSERT INTO quotas (org) VALUES ($1) ON CONFLICT (org) DO NOTHING`, org); err != nil {
			return err
		}
		if updated, err = db.One[Limits](ctx, tx, limitsOf+` FOR NO KEY UPDATE`, org); err != nil {
			return err
		}
		change(&updated)
		if err := updated.Check(); err != nil {
			return err
		}
		return db.Exec(ctx, tx, `
			UPDATE quotas SET agents = $2, stored_bytes = $3, requests_per_month = $4, gateway_requests_per_day = $5,
				gateway_tokens_per_day = $6 WHERE org = $1`, org, updated.Agents, updated.StoredBytes, updated.Requests,
			updated.GatewayRequests, updated.GatewayTokens)
	})
	return updated, err
}

// Fold handles organizations with at least minFold rows, at most foldRows rows per statement.
const (
	minFold  = 50
	foldRows = 10_000
)

// Fold replaces the rows that record changes of organizations' usage by their sums. Several servers may do it at once.
func (s *Store) Fold(ctx context.Context) error {
	return db.EachOrg(ctx, s.DB, func(org db.Org) error { return s.FoldOrg(ctx, org) },
		`SELECT org FROM stored_usage GROUP BY org HAVING count(*) >= $1 ORDER BY org`, minFold)
}

// FoldOrg is Fold for one organization.
func (s *Store) FoldOrg(ctx context.Context, org db.Org) (err error) {
	for folded := foldRows; err == nil && folded == foldRows; {
		err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
			folded, err = foldBatch(ctx, tx, org)
			return err
		})
	}
	return err
}

// foldBatch replaces at most foldRows rows by their sums, and returns their number.
func foldBatch(ctx context.Context, tx pgx.Tx, org db.Org) (folded int, err error) {
	type sum struct {
		Kind  string `db:"kind"`
		Items int64  `db:"items"`
		Bytes int64  `db:"bytes"`
		Rows  int    `db:"rows"`
	}
	sums, err := db.All[sum](ctx, tx, `
		WITH gone AS (
			DELETE FROM stored_usage WHERE org = $1 AND key = ANY (ARRAY(
				SELECT key FROM stored_usage WHERE org = $1 ORDER BY key LIMIT $2 FOR UPDATE SKIP LOCKED))
			RETURNING kind, items, bytes
		)
		SELECT kind, sum(items)::bigint AS items, sum(bytes)::bigint AS bytes, count(*) AS rows FROM gone GROUP BY kind`,
		org, foldRows)
	for _, one := range sums {
		folded += one.Rows
		if err == nil {
			_, err = tx.Exec(ctx, `INSERT INTO stored_usage (org, kind, items, bytes) VALUES ($1, $2, $3, $4)`,
				org, one.Kind, one.Items, one.Bytes)
		}
	}
	return folded, err
}

// monthOf returns the first moment, in UTC, of the month that contains t.
func monthOf(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), 1, 0, 0, 0, 0, time.UTC)
}
