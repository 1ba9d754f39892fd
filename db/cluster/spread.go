package cluster

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// Options of Run.
type Options struct {
	Shards   int            // parts of each table; 0 is DefaultShards
	Progress func(p Report) // called before each step; may be nil
}

// DefaultShards is the number of parts of each table. A part holds some organizations, and moves between nodes as a
// whole.
const DefaultShards = 32

// Report says how far a spreading is.
type Report struct {
	Step  string
	Done  int
	Total int
}

// Result says what Run did.
type Result struct {
	Tables  []Table       `json:"tables"`
	Moved   int           `json:"tables_moved"`
	Took    time.Duration `json:"-"`
	Resumed bool          `json:"resumed"` // an earlier run had been stopped
}

// keptTable keeps the foreign keys while tables are spread. No server starts while it exists.
const keptTable = db.SpreadingTable

// Plan returns what Run would do. ErrConflict if the database is not the coordinator of a cluster.
func Plan(ctx context.Context, conn *pgx.Conn) (Result, error) {
	if err := check(ctx, conn); err != nil {
		return Result{}, err
	}
	tables, err := Tables(ctx, conn)
	if err != nil {
		return Result{}, err
	}
	r := Result{Tables: tables}
	for _, t := range tables {
		if !t.Done {
			r.Moved++
		}
	}
	r.Resumed, err = stopped(ctx, conn)
	return r, err
}

// Run spreads the tables of an up-to-date database over the nodes of a cluster, whether they are empty or filled. It
// keeps servers off until conn ends. It may be stopped and run again: each table is moved in one transaction, and the
// foreign keys, which Citus does not move, are kept in a table until they are added again. ErrConflict if a server is
// at work, or if the database is not the coordinator of a cluster.
func Run(ctx context.Context, conn *pgx.Conn, o Options) (Result, error) {
	began := time.Now()
	if err := db.KeepServersOff(ctx, conn); err != nil {
		return Result{}, err
	}
	if err := db.CheckSchema(ctx, conn); err != nil {
		return Result{}, err
	}
	r, err := run(ctx, conn, o)
	r.Took = time.Since(began)
	return r, err
}

func run(ctx context.Context, conn *pgx.Conn, o Options) (Result, error) {
	r, err := Plan(ctx, conn)
	if err != nil {
		return r, err
	}
	s := spreading{conn: conn, o: o, total: r.Moved + 4}
	for _, step := range []struct {
		what string
		do   func(context.Context) error
	}{
		{"copy the functions", s.copyFunctions},
		{"take away the foreign keys", func(ctx context.Context) error { return s.takeReferences(ctx, r.Tables) }},
		{"", func(ctx context.Context) error { return s.move(ctx, r.Tables) }},
		{"add the foreign keys", s.addReferences},
		{"make statistics", s.analyze},
	} {
		if step.what != "" {
			s.report(step.what)
		}
		if err := step.do(ctx); err != nil {
			return r, err
		}
	}
	r.Tables, err = Tables(ctx, conn)
	return r, err
}

// spreading is one call of Run.
type spreading struct {
	conn        *pgx.Conn
	o           Options
	done, total int
}

func (s *spreading) report(step string) {
	if s.o.Progress != nil {
		s.o.Progress(Report{step, s.done, s.total})
	}
	s.done++
}

// stopped reports whether a spreading began and did not end.
func stopped(ctx context.Context, d db.DB) (bool, error) {
	return db.One[bool](ctx, d, `SELECT to_regclass($1) IS NOT NULL`, keptTable)
}

// reference is a foreign key.
type reference struct {
	Child      string `db:"child"`
	Name       string `db:"name"`
	Definition string `db:"definition"`
}

// takeReferences drops the foreign keys from and to the tables that are to be moved, and keeps their definitions. Keys
// that an earlier run has added again stay.
func (s *spreading) takeReferences(ctx context.Context, tables []Table) error {
	var moved []string
	for _, t := range tables {
		if !t.Done && !db.Queued(t.Name) {
			moved = append(moved, t.Name)
		}
	}
	return db.Tx(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `
			SET LOCAL citus.multi_shard_modify_mode = sequential; -- a table that is dropped from may refer to a spread one
			CREATE TABLE IF NOT EXISTS `+keptTable+` (
				child text NOT NULL, name text NOT NULL, definition text NOT NULL, PRIMARY KEY (child, name))`); err != nil {
			return err
		}
		references, err := db.All[reference](ctx, tx, `
			SELECT c.relname AS child, conname AS name, pg_get_constraintdef(f.oid) AS definition
			FROM pg_constraint f JOIN pg_class c ON c.oid = conrelid JOIN pg_class p ON p.oid = confrelid
			WHERE contype = 'f' AND connamespace = current_schema()::regnamespace AND conparentid = 0
			  AND (c.relname = ANY($1) OR p.relname = ANY($1))
			ORDER BY 1, 2`, moved)
		if err != nil {
			return fmt.Errorf("read the foreign keys: %w", err)
		}
		for _, f := range references {
			if err := s.take(ctx, tx, f); err != nil {
				return err
			}
		}
		return nil
	})
}

func (*spreading) take(ctx context.Context, tx pgx.Tx, f reference) error {
	if _, err := tx.Exec(ctx, `INSERT INTO `+keptTable+` VALUES ($1, $2, $3) ON CONFLICT (child, name) DO NOTHING`,
		f.Child, f.Name, f.Definition); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, fmt.Sprintf(`ALTER TABLE %s DROP CONSTRAINT %s`, quoted(f.Child), quoted(f.Name)))
	return err
}

// move moves the tables that do not lie where they belong.
func (s *spreading) move(ctx context.Context, tables []Table) error {
	first := "none"            // the first table begins a group: its tables have an organization on the same node
	for _, t := range tables { // an earlier run, with another order, may have begun it
		if t.Done && t.Place == Spread {
			first = t.Name
			break
		}
	}
	for _, t := range tables {
		if !t.Done {
			s.report(fmt.Sprintf("move table %s (%d MB)", t.Name, t.Bytes>>20))
			if err := s.moveOne(ctx, t, first); err != nil {
				return fmt.Errorf("move table %s: %w", t.Name, err)
			}
		}
		if t.Place == Spread && first == "none" {
			first = t.Name
		}
	}
	return nil
}

func (s *spreading) moveOne(ctx context.Context, t Table, with string) error {
	sql, args := `SELECT create_reference_table($1)`, []any{quoted(t.Name)}
	switch {
	case t.Place == Central:
		return nil
	case t.Place == Spread && with == "none":
		shards := s.o.Shards
		if shards == 0 {
			shards = DefaultShards
		}
		sql, args = `SELECT create_distributed_table($1, 'org', colocate_with => 'none', shard_count => $2)`,
			append(args, shards)
	case t.Place == Spread:
		sql, args = `SELECT create_distributed_table($1, 'org', colocate_with => $2)`, append(args, quoted(with))
	}
	return db.Tx(ctx, s.conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL citus.shard_replication_factor = 1`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, sql, args...); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `SELECT truncate_local_data_after_distributing_table($1)`, quoted(t.Name))
		return err
	})
}

// copyFunctions makes the functions of the schema exist on each node: indexes and statements call them there.
func (s *spreading) copyFunctions(ctx context.Context) error {
	functions, err := db.All[string](ctx, s.conn, `
		SELECT p.oid::regprocedure::text
		FROM pg_proc p JOIN pg_class c ON c.oid = to_regclass('schema_migrations')
		WHERE p.pronamespace = c.relnamespace AND p.proowner = c.relowner AND prorettype <> 'trigger'::regtype
		  AND proname NOT LIKE 'river\_%' AND prokind = 'f'
		  AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = p.oid AND deptype = 'e')
		ORDER BY 1`)
	if err != nil {
		return err
	}
	for _, f := range functions {
		if _, err := s.conn.Exec(ctx, `SELECT create_distributed_function($1::regprocedure)`, f); err != nil {
			return fmt.Errorf("copy function %s: %w", f, err)
		}
	}
	return nil
}

// addReferences adds the foreign keys that were kept.
func (s *spreading) addReferences(ctx context.Context) error {
	references, err := db.All[reference](ctx, s.conn, `
		SELECT child, name, definition FROM `+keptTable+` k
		WHERE NOT EXISTS (SELECT FROM pg_constraint WHERE conrelid = k.child::regclass AND conname = k.name)
		ORDER BY child, name`)
	if err != nil {
		return err
	}
	for i, f := range references {
		if s.o.Progress != nil {
			s.o.Progress(Report{fmt.Sprintf("add foreign key %d of %d", i+1, len(references)), s.done, s.total})
		}
		sql := fmt.Sprintf(`ALTER TABLE %s ADD CONSTRAINT %s %s`, quoted(f.Child), quoted(f.Name), f.Definition)
		if _, err := s.conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("%s: %w", sql, err)
		}
	}
	_, err = s.conn.Exec(ctx, `DROP TABLE `+keptTable)
	return err
}

func (s *spreading) analyze(ctx context.Context) error {
	_, err := s.conn.Exec(ctx, `ANALYZE`)
	return err
}

func quoted(name string) string { return pgx.Identifier{name}.Sanitize() }
