package quota

import (
	"context"
	"errors"
	"time"

	"github.com/loci-memory/loci/db"
)

// asked is what an organization asked of providers in a day, and what it may ask.
type asked struct {
	Requests    int64  `db:"requests"`
	Tokens      int64  `db:"tokens"`
	MaxRequests *int64 `db:"max_requests"`
	MaxTokens   *int64 `db:"max_tokens"`
}

// Ask counts a request that the server pays for, of the day in UTC that contains now. *db.QuotaError if the
// organization may ask no more that day; the request is then not counted. Requests at the same moment may exceed the
// quota of tokens together.
func (s *Store) Ask(ctx context.Context, org db.Org, now time.Time) error {
	day := dayOf(now)
	of, err := db.One[asked](ctx, s.DB, `
		SELECT coalesce(c.requests, 0) AS requests, coalesce(c.tokens, 0) AS tokens,
		       q.gateway_requests_per_day AS max_requests, q.gateway_tokens_per_day AS max_tokens
		FROM quotas q LEFT JOIN gateway_counts c ON c.org = $1 AND c.day = $2
		WHERE q.org = $1`, org, day)
	if err != nil && !errors.Is(err, db.ErrNotFound) {
		return err
	}
	until := day.AddDate(0, 0, 1)
	if of.MaxTokens != nil && of.Tokens >= *of.MaxTokens {
		return &db.QuotaError{Quota: db.QuotaGatewayTokens, Used: of.Tokens, Requested: 1, Limit: *of.MaxTokens, Until: until}
	}
	counted, err := db.One[int64](ctx, s.DB, `
		INSERT INTO gateway_counts AS c (org, day, requests, tokens) SELECT $1, $2, 1, 0 WHERE $3::bigint IS NULL OR $3 > 0
		ON CONFLICT (org, day) DO UPDATE SET requests = c.requests + 1 WHERE $3::bigint IS NULL OR c.requests < $3
		RETURNING requests`, org, day, of.MaxRequests)
	if errors.Is(err, db.ErrNotFound) && counted == 0 {
		return &db.QuotaError{Quota: db.QuotaGatewayRequests, Used: of.Requests, Requested: 1, Limit: *of.MaxRequests,
			Until: until}
	}
	return err
}

// Spend counts tokens of a request that Ask has counted.
func (s *Store) Spend(ctx context.Context, org db.Org, now time.Time, tokens int64) error {
	_, err := s.DB.Exec(ctx, `
		INSERT INTO gateway_counts AS c (org, day, requests, tokens) VALUES ($1, $2, 0, $3)
		ON CONFLICT (org, day) DO UPDATE SET tokens = c.tokens + excluded.tokens`, org, dayOf(now), tokens)
	return db.Error(err)
}

// dayOf returns the first moment, in UTC, of the day that contains t.
func dayOf(t time.Time) time.Time {
	t = t.UTC()
	return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)
}
