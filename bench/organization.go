package main

import (
	"context"
	"crypto/sha256"

	"github.com/jackc/pgx/v5"
)

// organization creates an organization with a key, and returns a client with that key.
func (s *instance) organization(ctx context.Context, name string) (client, error) {
	c := s.client
	c.key = "loci_benchmark_of_" + name
	sum := sha256.Sum256([]byte(c.key))
	return c, s.query(ctx, func(conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `
			WITH o AS (
				INSERT INTO organizations (name) VALUES ($1) RETURNING org
			), required AS (
				INSERT INTO keys_required SELECT true ON CONFLICT DO NOTHING
			)
			INSERT INTO api_keys (org, name, prefix, sha256) SELECT org, 'bench', 'loci_', $2 FROM o`, name, sum[:])
		return err
	})
}
