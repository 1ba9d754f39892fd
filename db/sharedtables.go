package db

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"
)

// SharedTables lists the tables that belong to no single organization, each with the reason. Every other table, except
// River's, is a tenant's table: its column org is first in its primary key, in each unique constraint, and in each
// reference from one tenant's table to another.
var SharedTables = map[string]string{
	"organizations":    "the organizations themselves",
	"api_keys":         "a key is looked up before its organization is known",
	"revoked_keys":     "a revoked key is looked up by its hash alone",
	"console_sessions": "a session is looked up before its organization is known",
	"keys_required":    "one row for the server: whether requests need a key",
	"room_checks":      "it has rows only in transactions that are rolled back",
	"probes":           "the server's own",
	"embedding_spaces": "a space is a model's, and organizations share models",
	"server_policies":  "the operator sets them for all organizations",
	"reembedding":      "one row for the server: the new space is of all organizations",
	migrationsTable:    "golang-migrate's record of the schema's version",
}

// ReferenceTables lists the shared tables with a copy on each node of a cluster, each with the reason. The other shared
// tables, and River's, stay on the coordinator, where all servers look: they are read or locked before an organization
// is known.
var ReferenceTables = map[string]string{
	"organizations":    "rows of organizations refer to their organization",
	"embedding_spaces": "vectors refer to their space",
	"server_policies":  "an agent's policy is read together with the server's",
}

// migrationsTable is golang-migrate's table with the schema's version. In a cluster it stays on the coordinator.
const migrationsTable = "schema_migrations"

// jobTables is the prefix of River's tables.
const jobTables = "river_"

// Shared reports whether a table belongs to no single organization.
func Shared(table string) bool {
	_, shared := SharedTables[table]
	return shared || Queued(table)
}

// Queued reports whether a table is River's.
func Queued(table string) bool { return strings.HasPrefix(table, jobTables) }

type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// IsSpread reports whether organizations lie on the nodes of a cluster.
func IsSpread(ctx context.Context, d querier) (spread bool, err error) {
	if err := d.QueryRow(ctx, `SELECT to_regclass('pg_dist_partition') IS NOT NULL`).Scan(&spread); err != nil || !spread {
		return false, err
	}
	err = d.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM pg_dist_partition WHERE logicalrelid = to_regclass('agents') AND partmethod = 'h')`,
	).Scan(&spread)
	return spread, err
}
