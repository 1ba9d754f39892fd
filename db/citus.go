package db

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// migrationsTable is golang-migrate's table with the schema's version. In a cluster it stays on the node that runs the
// migrations.
const migrationsTable = "schema_migrations"

// schemaTable is a table of the schema public, with its parts for which Citus has rules.
type schemaTable struct {
	Name     string   `db:"name"`
	Parents  []string `db:"parents"`  // other tables to which its foreign keys point
	Identity []string `db:"identity"` // identity columns, each with its type
	Triggers []string `db:"triggers"`
	Indexes  []string `db:"indexes"` // indexes for searches: gin and hnsw
}

// CitusPlan returns SQL statements that distribute the tables of an up-to-date database over the nodes of a Citus
// cluster, by organization. The statements are in an order that Citus accepts; comments say what is lost. CitusPlan
// changes nothing.
func CitusPlan(ctx context.Context, d DB) (string, error) {
	tables, err := All[schemaTable](ctx, d, `
		SELECT c.relname AS name,
		       ARRAY(SELECT DISTINCT p.relname::text FROM pg_constraint JOIN pg_class p ON p.oid = confrelid
		             WHERE contype = 'f' AND conrelid = c.oid AND confrelid <> c.oid) AS parents,
		       ARRAY(SELECT attname || ' ' || format_type(atttypid, atttypmod) FROM pg_attribute
		             WHERE attrelid = c.oid AND attidentity <> '' AND NOT attisdropped ORDER BY attnum) AS identity,
		       ARRAY(SELECT tgname::text FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal
		             ORDER BY tgname) AS triggers,
		       ARRAY(SELECT x.relname::text
		             FROM pg_index JOIN pg_class x ON x.oid = indexrelid JOIN pg_am m ON m.oid = x.relam
		             WHERE indrelid = c.oid AND amname IN ('gin', 'hnsw') ORDER BY x.relname) AS indexes
		FROM pg_class c
		WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace
		ORDER BY c.relname`)
	if err != nil {
		return "", fmt.Errorf("read the tables: %w", err)
	}
	references, err := All[reference](ctx, d, `
		SELECT conrelid::regclass::text AS table, conname AS name, pg_get_constraintdef(oid) AS definition
		FROM pg_constraint
		WHERE contype = 'f' AND connamespace = 'public'::regnamespace
		ORDER BY 1, 2`)
	if err != nil {
		return "", fmt.Errorf("read the foreign keys: %w", err)
	}
	if tables, err = parentsFirst(tables); err != nil {
		return "", err
	}
	return citusPlan(tables, references), nil
}

// reference is a foreign key.
type reference struct {
	Table      string `db:"table"`
	Name       string `db:"name"`
	Definition string `db:"definition"`
}

// refusedAction matches the actions that Citus refuses in a foreign key that contains the distribution column.
var refusedAction = regexp.MustCompile(
	` ON UPDATE (CASCADE|SET NULL|SET DEFAULT)| ON DELETE SET (NULL|DEFAULT)( \([^)]*\))?`)

// parentsFirst orders tables so that each table comes after the tables to which its foreign keys point.
func parentsFirst(tables []schemaTable) (ordered []schemaTable, err error) {
	placed := map[string]bool{}
	for len(tables) > 0 {
		i := slices.IndexFunc(tables, func(t schemaTable) bool {
			return !slices.ContainsFunc(t.Parents, func(parent string) bool { return !placed[parent] })
		})
		if i < 0 {
			return nil, errors.New("tables refer to each other in a circle, among them " + tables[0].Name)
		}
		placed[tables[i].Name] = true
		ordered, tables = append(ordered, tables[i]), slices.Delete(tables, i, i+1)
	}
	return ordered, nil
}

// planHead is the introduction of a plan.
const planHead = `-- How the tables of Loci are spread over a Citus cluster (12.0 or newer), each organization's rows on
-- one node. Run this on the coordinator, on a database without a running server. Loci itself is not tested on Citus:
-- read docs/scaling.md first.

SET citus.shard_replication_factor = 1; -- the only one with which Citus allows foreign keys
`

// plan is the text of a plan.
type plan struct{ strings.Builder }

// section begins a section of the plan with a comment, and lists things below it, one per line.
func (p *plan) section(about string, things ...string) {
	fmt.Fprintf(p, "\n-- %s\n", strings.ReplaceAll(about, "\n", "\n-- "))
	for _, thing := range things {
		fmt.Fprintf(p, "--   %s\n", thing)
	}
}

func citusPlan(tables []schemaTable, references []reference) string {
	var p plan
	fmt.Fprint(&p, planHead)
	p.removeRefused(tables, references)
	p.section("Shared tables: each node has a copy. Foreign keys of distributed tables may refer to them.")
	for _, t := range tables {
		if Shared(t.Name) && !t.local() {
			fmt.Fprintf(&p, "SELECT create_reference_table('%s'); -- %s\n", t.Name, SharedTables[t.Name])
		}
	}
	p.section("Tables of organizations, each after those that it refers to.")
	first := "none" // the first table is colocated with none, the others with the first
	for _, t := range tables {
		if !Shared(t.Name) {
			fmt.Fprintf(&p, "SELECT create_distributed_table('%s', 'org', colocate_with => '%s');\n", t.Name, first)
			if first == "none" {
				first = t.Name
			}
		}
	}
	p.explain(tables)
	return p.String()
}

// removeRefused adds statements that remove what Citus cannot distribute.
func (p *plan) removeRefused(tables []schemaTable, references []reference) {
	p.section("Foreign keys. Citus refuses ON UPDATE CASCADE and ON DELETE SET NULL where the key has the column that\n" +
		"distributes, also with a list of other columns.")
	for _, r := range references {
		actions := refusedAction.FindAllString(r.Definition, -1)
		if Shared(r.Table) || actions == nil || !strings.HasPrefix(r.Definition, "FOREIGN KEY (org") {
			continue
		}
		fmt.Fprintf(p, "ALTER TABLE %s\n\tDROP CONSTRAINT %s, --%s\n\tADD CONSTRAINT %s %s;\n", r.Table, r.Name,
			strings.Join(actions, ""), r.Name, refusedAction.ReplaceAllString(r.Definition, ""))
	}
	p.section("Triggers. Citus refuses a table that has one, and in a shard none may change another table.")
	for _, t := range tables {
		for _, trigger := range t.Triggers {
			fmt.Fprintf(p, "DROP TRIGGER %s ON %s;\n", trigger, t.Name)
		}
	}
}

// explain says which tables stay on one node, and what works differently on several nodes.
func (p *plan) explain(tables []schemaTable) {
	var local, identity, indexes []string
	for _, t := range tables {
		if t.local() {
			local = append(local, t.Name)
			continue
		}
		for _, column := range t.Identity {
			identity = append(identity, t.Name+"."+column)
		}
		for _, index := range t.Indexes {
			indexes = append(indexes, t.Name+": "+index)
		}
	}
	p.section("Tables that stay on the coordinator. The queue of jobs is one for all organizations, and takes its rows\n"+
		"with FOR UPDATE SKIP LOCKED, which Citus runs on one shard only.", local...)
	p.section("Identity columns. Servers connect to the coordinator alone: elsewhere only those of type bigint get\n"+
		"numbers, from the node's number × 2^48 on, for which the terms of messages and passages have no room.", identity...)
	p.section("Indexes of searches. Each shard has its own. CREATE INDEX CONCURRENTLY, by which servers make those of\n"+
		"vectors, may fail on some shards, and leaves an invalid index then.", indexes...)
	p.section("Advisory locks, LISTEN and NOTIFY hold on one node: servers and commands connect to the coordinator.")
}

// local reports whether a table stays on one node.
func (t schemaTable) local() bool {
	return t.Name == migrationsTable || strings.HasPrefix(t.Name, jobTables)
}
