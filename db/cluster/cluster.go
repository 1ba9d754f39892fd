// Package cluster spreads a database over the nodes of a Citus cluster, each organization on one node, and says how it
// lies there. Citus is an extension of Postgres that the operator installs; Loci speaks to it in SQL alone.
//
// Each file uses only the files named before it: cluster.go tables.go spread.go examine.go
package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/loci-memory/loci/db"
)

// Node is a Postgres of the cluster.
type Node struct {
	Name        string `db:"name" json:"name"` // host:port
	Coordinator bool   `db:"coordinator" json:"coordinator"`
	Active      bool   `db:"active" json:"active"`
	Shards      int    `db:"shards" json:"shards"` // parts of tables that lie there
	Bytes       int64  `db:"bytes" json:"bytes"`
}

// Is reports whether d's database has the extension Citus, and so may be the coordinator of a cluster.
func Is(ctx context.Context, d db.DB) (bool, error) {
	return db.One[bool](ctx, d, `SELECT to_regclass('pg_dist_node') IS NOT NULL`)
}

// check returns an error if d's database is not the coordinator of a cluster with nodes that take organizations.
func check(ctx context.Context, d db.DB) error {
	is, err := Is(ctx, d)
	if err != nil {
		return err
	}
	if !is {
		return db.Conflict("this Postgres is not the coordinator of a Citus cluster: install Citus and pgvector on each " +
			"node, run CREATE EXTENSION citus in this database and in one of the same name on each node, then SELECT " +
			"citus_set_coordinator_host('HOST', PORT), and for each node SELECT citus_add_node('HOST', PORT)")
	}
	type group struct {
		Coordinators int      `db:"coordinators"`
		Takers       int      `db:"takers"`
		Inactive     []string `db:"inactive"`
	}
	g, err := db.One[group](ctx, d, `
		SELECT count(*) FILTER (WHERE groupid = 0) AS coordinators,
		       count(*) FILTER (WHERE shouldhaveshards AND isactive AND noderole = 'primary') AS takers,
		       coalesce(array_agg(nodename || ':' || nodeport) FILTER (WHERE NOT isactive), '{}') AS inactive
		FROM pg_dist_node`)
	switch {
	case err != nil:
		return fmt.Errorf("read the nodes of the cluster: %w", err)
	case g.Coordinators == 0:
		return db.Conflict("the cluster does not know its coordinator, which keeps the shared tables: run SELECT " +
			"citus_set_coordinator_host('HOST', PORT) here, with the address at which the nodes reach it")
	case g.Takers == 0:
		return db.Conflict("the cluster has no node that takes organizations: run SELECT citus_add_node('HOST', PORT) " +
			"for each")
	case len(g.Inactive) > 0:
		return db.Conflict("nodes of the cluster are not active (%s): activate them with citus_activate_node, or remove "+
			"them with citus_remove_node", strings.Join(g.Inactive, ", "))
	}
	return nil
}
