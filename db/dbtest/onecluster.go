package dbtest

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/cluster"
)

// spreadShards is the number of parts of each table in a cluster of tests.
const spreadShards = 4

// nodesOf returns the host:port of each node besides the coordinator, if the server's own database is the coordinator
// of a Citus cluster. Otherwise it returns none.
func nodesOf(ctx context.Context, conn *pgx.Conn) (coordinator string, nodes []string, err error) {
	is, err := cluster.Is(ctx, conn)
	if err != nil || !is {
		return "", nil, err
	}
	all, err := db.All[string](ctx, conn, `
		SELECT nodename || ':' || nodeport FROM pg_dist_node WHERE isactive ORDER BY groupid`)
	if err != nil || len(all) < 2 {
		return "", nil, err
	}
	return all[0], all[1:], nil
}

// spreadDatabase returns the database that all test programs share on a cluster, at the current schema and spread by
// organization. It is made once for each schema, by whoever comes first, and stays. ok is false without a cluster.
func spreadDatabase() (name string, ok bool, err error) {
	if err := begin(); err != nil {
		return "", false, err
	}
	err = admin(shared.url, func(ctx context.Context, conn *pgx.Conn) error {
		coordinator, nodes, err := nodesOf(ctx, conn)
		if err != nil || len(nodes) == 0 {
			return err
		}
		ok = true
		schema, err := fingerprint()
		if err != nil {
			return err
		}
		name = "loci_spread_" + schema
		if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(hashtext($1))`, name); err != nil {
			return err
		}
		if whole, err := isWhole(ctx, conn, name); err != nil || whole {
			return err
		}
		if err := joinCluster(ctx, name, coordinator, nodes); err != nil {
			return err
		}
		if err := spreadAll(ctx, on(shared.url, name)); err != nil {
			return err
		}
		_, err = conn.Exec(ctx, `COMMENT ON DATABASE `+name+` IS 'whole'`)
		return err
	})
	return name, ok, err
}

// SpreadURL returns the URL of a new database on the tests' cluster for a superuser. The database has no schema yet. ok
// is false if the tests' Postgres is no coordinator of a cluster. The database is dropped at the end of the test.
func SpreadURL(t testing.TB) (database string, ok bool) {
	t.Helper()
	if err := begin(); err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	var all []string
	name := fmt.Sprintf("loci_cluster_%d", shared.count.Add(1))
	if err := admin(shared.url, func(ctx context.Context, conn *pgx.Conn) error {
		coordinator, nodes, err := nodesOf(ctx, conn)
		if err != nil || len(nodes) == 0 {
			return err
		}
		all = append(nodes, coordinator)
		return joinCluster(ctx, name, coordinator, nodes)
	}); err != nil {
		t.Fatalf("dbtest: a database on the cluster: %v", err)
	}
	if all == nil {
		return "", false
	}
	t.Cleanup(func() {
		for _, node := range reversed(all) { // the coordinator first, which holds connections to the others
			_ = admin(at(shared.url, node), func(ctx context.Context, conn *pgx.Conn) error {
				_, err := conn.Exec(ctx, `DROP DATABASE IF EXISTS `+name+` WITH (FORCE)`)
				return err
			})
		}
	})
	return on(shared.url, name), true
}

// joinCluster creates a database on each node, and joins the databases to one cluster.
func joinCluster(ctx context.Context, name, coordinator string, nodes []string) error {
	for _, node := range append(nodes, coordinator) {
		for _, sql := range []string{`DROP DATABASE IF EXISTS ` + name + ` WITH (FORCE)`, `CREATE DATABASE ` + name} {
			if err := run(ctx, at(shared.url, node), sql); err != nil {
				return fmt.Errorf("node %s: %s: %w", node, sql, err)
			}
		}
		if err := run(ctx, on(at(shared.url, node), name), `CREATE EXTENSION citus`); err != nil {
			return fmt.Errorf("node %s: %w", node, err)
		}
	}
	host, port, _ := strings.Cut(coordinator, ":")
	join := []string{fmt.Sprintf(`SELECT citus_set_coordinator_host('%s', %s)`, host, port)}
	for _, node := range nodes {
		host, port, _ := strings.Cut(node, ":")
		join = append(join, fmt.Sprintf(`SELECT citus_add_node('%s', %s)`, host, port))
	}
	return run(ctx, on(shared.url, name), join...)
}

// spreadAll migrates a database and spreads it.
func spreadAll(ctx context.Context, owner string) error {
	if _, err := db.Migrate(ctx, db.URLs{Owner: owner, Server: Serving(owner)}); err != nil {
		return err
	}
	conn, err := db.Dial(ctx, owner)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // it was used
	_, err = cluster.Run(ctx, conn, cluster.Options{Shards: spreadShards})
	return err
}

// isWhole reports whether a database exists and was spread to the end.
func isWhole(ctx context.Context, conn *pgx.Conn, name string) (whole bool, err error) {
	err = conn.QueryRow(ctx, `
		SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1 AND shobj_description(oid, 'pg_database') = 'whole')`,
		name).Scan(&whole)
	return whole, err
}

// run runs statements on a new connection, each in a transaction of its own.
func run(ctx context.Context, database string, statements ...string) error {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	defer conn.Close(ctx) //nolint:errcheck // it was used
	for _, sql := range statements {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

// at returns a server's URL with another host and port.
func at(server, node string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	u.Host = node
	settings := u.Query()
	settings.Del("host")
	settings.Del("port")
	u.RawQuery = settings.Encode()
	return u.String()
}

func reversed(nodes []string) (list []string) {
	for _, node := range nodes {
		list = append([]string{node}, list...)
	}
	return list
}
