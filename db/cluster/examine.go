package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Limits beyond which an examination gives advice.
const (
	maxNodeShare = 2.0 // times the mean of all nodes
	maxOrgShare  = 0.5 // of what all organizations store
	minSkewBytes = 1 << 30
)

// Examine says which nodes the cluster of a database has, how its tables lie on them, and whether an organization holds
// much more than others. It returns nothing for a database on one Postgres.
func Examine(ctx context.Context, conn *pgx.Conn) []db.Finding {
	is, err := Is(ctx, conn)
	if err == nil && !is {
		return nil
	}
	var began, spread bool
	if err == nil {
		began, err = stopped(ctx, conn)
	}
	if err == nil {
		spread, err = db.IsSpread(ctx, conn)
	}
	switch {
	case err != nil:
		return []db.Finding{{Of: "cluster", State: db.Broken, Text: err.Error(),
			Remedy: "see what it says, and Postgres' log"}}
	case began:
		return []db.Finding{{Of: "cluster", State: db.Broken, Text: "the tables are spread in part, and lack foreign keys",
			Remedy: "stop every server, and run 'loci migrate spread' again: it goes on where it was"}}
	case !spread:
		return []db.Finding{{Of: "cluster", State: db.Advice,
			Text:   "Postgres has Citus, and the tables lie on this node alone",
			Remedy: "stop every server, and run 'loci migrate spread'"}}
	}
	list := []db.Finding{examineNodes(ctx, conn)}
	if list[0].State != db.Broken {
		list = append(list, examineShards(ctx, conn), examineOrgs(ctx, conn))
	}
	return list
}

// examineNodes says whether each node answers.
func examineNodes(ctx context.Context, conn *pgx.Conn) db.Finding {
	type node struct {
		Name   string `db:"name"`
		Answer string `db:"answer"`
		OK     bool   `db:"ok"`
	}
	nodes, err := db.All[node](ctx, conn, `
		SELECT n.nodename || ':' || n.nodeport AS name, coalesce(r.result, '') AS answer, coalesce(r.success, false) AS ok
		FROM pg_dist_node n JOIN run_command_on_workers('SELECT 1') r
		  ON r.nodename = n.nodename AND r.nodeport = n.nodeport
		ORDER BY 1`)
	if err != nil {
		return db.Finding{Of: "cluster", State: db.Broken, Text: "the nodes cannot be asked: " + err.Error(),
			Remedy: "see what it says, and Postgres' log"}
	}
	var away []string
	for _, n := range nodes {
		if !n.OK {
			away = append(away, n.Name+" ("+n.Answer+")")
		}
	}
	if len(away) > 0 {
		return db.Finding{Of: "cluster", State: db.Broken, Text: "nodes do not answer: " + strings.Join(away, ", "),
			Remedy: "start Postgres there; until then, requests of the organizations on it are answered with 503"}
	}
	return db.Finding{Of: "cluster", State: db.Well, Text: fmt.Sprintf("%d nodes besides the coordinator, all answer",
		len(nodes))}
}

// examineShards says how the parts of the tables lie on the nodes.
func examineShards(ctx context.Context, conn *pgx.Conn) db.Finding {
	nodes, err := db.All[Node](ctx, conn, `
		SELECT n.nodename || ':' || n.nodeport AS name, n.groupid = 0 AS coordinator, n.isactive AS active,
		       count(s.shardid)::integer AS shards, coalesce(sum(s.shard_size), 0)::bigint AS bytes
		FROM pg_dist_node n LEFT JOIN citus_shards s
		  ON s.nodename = n.nodename AND s.nodeport = n.nodeport AND s.citus_table_type = 'distributed'
		WHERE n.shouldhaveshards
		GROUP BY 1, 2, 3
		ORDER BY 1`)
	if err != nil {
		return db.Finding{Of: "shards", State: db.Broken, Text: err.Error(), Remedy: "see what it says, and Postgres' log"}
	}
	var total, most int64
	parts := make([]string, len(nodes))
	for i, n := range nodes {
		total, most = total+n.Bytes, max(most, n.Bytes)
		parts[i] = fmt.Sprintf("%s has %d of %d MB", n.Name, n.Shards, n.Bytes>>20)
	}
	remedy := ""
	if total > minSkewBytes && float64(most) > maxNodeShare*float64(total)/float64(len(nodes)) {
		remedy = "let a superuser run SELECT citus_rebalance_start(), which moves parts while servers work"
	}
	return db.MakeFinding("shards", db.Advice, strings.Join(parts, ", "), remedy)
}

// examineOrgs says how much of all data the largest organization has.
func examineOrgs(ctx context.Context, conn *pgx.Conn) db.Finding {
	type usage struct {
		Org   db.Org `db:"org"`
		Bytes int64  `db:"bytes"`
	}
	orgs, err := db.All[usage](ctx, conn, `
		SELECT org, sum(bytes)::bigint AS bytes FROM stored_usage GROUP BY org ORDER BY 2 DESC, 1`)
	if err != nil {
		return db.Finding{Of: "skew", State: db.Broken, Text: err.Error(), Remedy: "see what it says, and Postgres' log"}
	}
	var total int64
	for _, o := range orgs {
		total += o.Bytes
	}
	if len(orgs) == 0 || total <= 0 {
		return db.Finding{Of: "skew", State: db.Well, Text: "the organizations store nothing yet"}
	}
	largest, remedy := orgs[0], ""
	id, err := db.One[string](ctx, conn, `SELECT id FROM organizations WHERE org = $1`, largest.Org)
	if err != nil {
		id = fmt.Sprint(largest.Org)
	}
	if total > minSkewBytes && float64(largest.Bytes) > maxOrgShare*float64(total) {
		remedy = fmt.Sprintf("let a superuser run SELECT isolate_tenant_to_new_shard('agents', %d, 'CASCADE'), then move "+
			"that part to a node of its own with citus_move_shard_placement", largest.Org)
	}
	return db.MakeFinding("skew", db.Advice, fmt.Sprintf("of %d organizations, the largest one (%s) stores %d %% of %d MB",
		len(orgs), id, largest.Bytes*100/total, total>>20), remedy)
}
