package db

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Finding is what an examination found of one thing.
type Finding struct {
	Of     string `json:"of"`    // the thing: postgres, pgvector, schema, …
	State  State  `json:"state"` // ok, advice or broken
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"` // what to do about it; empty if it is well
}

// State says how a thing is.
type State string

// The states of a Finding.
const (
	Well   State = "ok"
	Advice State = "advice" // it works, and could work better
	Broken State = "broken"
)

// MakeFinding returns a finding, which is well without a remedy.
func MakeFinding(of string, otherwise State, text, remedy string) Finding {
	if remedy == "" {
		otherwise = Well
	}
	return Finding{of, otherwise, text, remedy}
}

// Bounds beyond which an examination advises.
const (
	maxClockSkew  = 5 * time.Second
	maxJobWait    = 10 * time.Minute
	minUnanalyzed = 10_000 // rows
)

// examined is what the catalog and the settings of a database say.
type examined struct {
	Version      int       `db:"version"` // 150004 is 15.4
	VersionText  string    `db:"version_text"`
	Vector       *string   `db:"vector"`
	Superuser    bool      `db:"superuser"`
	Role         string    `db:"role"`
	Now          time.Time `db:"now"`
	Fsync        string    `db:"fsync"`
	FullPages    string    `db:"full_pages"`
	SharedBytes  int64     `db:"shared_bytes"`
	Connections  int       `db:"connections"`
	Connected    int       `db:"connected"`
	Size         string    `db:"size"`
	Broken       []string  `db:"broken_indexes"`
	Unanalyzed   []string  `db:"unanalyzed"`
	AutovacuumOn bool      `db:"autovacuum_on"`
}

// Examine says how a database is, and what to do where it is not well. Its errors are findings, but for that of ctx.
func Examine(ctx context.Context, conn *pgx.Conn) []Finding {
	asked := time.Now()
	e, err := One[examined](ctx, conn, `
		SELECT current_setting('server_version_num')::integer AS version, current_setting('server_version') AS version_text,
		       (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS vector,
		       (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS superuser, current_user::text AS role,
		       clock_timestamp() AS now, current_setting('fsync') AS fsync,
		       current_setting('full_page_writes') AS full_pages,
		       pg_size_bytes(current_setting('shared_buffers')) AS shared_bytes,
		       current_setting('max_connections')::integer AS connections,
		       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')::integer AS connected,
		       pg_size_pretty(pg_database_size(current_database())) AS size,
		       ARRAY(SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
		             WHERE c.relnamespace = current_schema()::regnamespace AND NOT i.indisvalid
		               AND NOT EXISTS (SELECT FROM pg_stat_progress_create_index p WHERE p.index_relid = c.oid)
		             ORDER BY 1) AS broken_indexes,
		       ARRAY(SELECT relname::text FROM pg_stat_user_tables
		             WHERE schemaname = current_schema() AND n_live_tup > $1 AND last_analyze IS NULL
		               AND last_autoanalyze IS NULL
		             ORDER BY 1) AS unanalyzed,
		       current_setting('autovacuum')::boolean AS autovacuum_on`, minUnanalyzed)
	if err != nil {
		return []Finding{{"postgres", Broken, err.Error(), "see what it says, and Postgres' log"}}
	}
	schema := Finding{"schema", Well, "is this program's", ""}
	if err := CheckSchema(ctx, conn); err != nil {
		schema = Finding{"schema", Broken, err.Error(), "run 'loci migrate', or start 'loci serve' as the schema's owner"}
	}
	list := append(e.findings(time.Since(asked)), schema)
	if schema.State == Well {
		list = append(list, examineJobs(ctx, conn))
	}
	return list
}

// findings judges what was read, took after it was asked for.
func (e examined) findings(took time.Duration) (list []Finding) {
	add := func(of string, otherwise State, text, remedy string) {
		list = append(list, MakeFinding(of, otherwise, text, remedy))
	}
	remedy := ""
	if e.Version < 150000 {
		remedy = "Loci needs Postgres 15 or newer"
	}
	add("postgres", Broken, "version "+e.VersionText+", "+e.Size, remedy)
	vector := "is not installed in this database"
	remedy = "let a superuser run CREATE EXTENSION vector"
	if e.Vector != nil {
		vector, remedy = "version "+*e.Vector, ""
		if !atLeast(*e.Vector, minPgvector) {
			remedy = "install " + minPgvector + " or newer, and run ALTER EXTENSION vector UPDATE"
		}
	}
	add("pgvector", Broken, vector, remedy)
	remedy = ""
	if e.Superuser {
		remedy = "let the server work as a role that owns nothing: see Roles in docs/operations.md"
	}
	add("role", Advice, fmt.Sprintf("the server works as %s (superuser: %t)", e.Role, e.Superuser), remedy)
	remedy = ""
	if e.Fsync != "on" || e.FullPages != "on" {
		remedy = "set fsync and full_page_writes to on: without them a crash of the machine loses acknowledged writes"
	}
	add("durability", Broken, "fsync "+e.Fsync+", full_page_writes "+e.FullPages, remedy)
	skew := time.Since(e.Now) - took
	remedy = ""
	if skew.Abs() > maxClockSkew {
		remedy = "set the clocks by NTP: validity, expiry of keys and retention go by them"
	}
	add("clock", Advice, fmt.Sprintf("differs from this machine's by %s at most",
		(skew.Abs()+took).Round(time.Millisecond)), remedy)
	remedy = ""
	if e.SharedBytes < 128<<20 {
		remedy = "set shared_buffers to a quarter of the machine's memory"
	}
	add("memory", Advice, fmt.Sprintf("shared_buffers is %d MiB", e.SharedBytes>>20), remedy)
	remedy = ""
	if e.Connections-e.Connected < maxConns {
		remedy = fmt.Sprintf("raise max_connections, or lower the servers' pools by pool_max_conns in LOCI_DATABASE_URL: "+
			"one server uses %d and two more", maxConns)
	}
	add("connections", Advice, fmt.Sprintf("%d of %d are in use", e.Connected, e.Connections), remedy)
	remedy = ""
	if len(e.Broken) > 0 {
		remedy = "an index that was being built was interrupted: the server builds it anew within minutes, or 'loci migrate'"
	}
	add("indexes", Advice, fmt.Sprintf("%d are not valid %v", len(e.Broken), e.Broken), remedy)
	remedy = ""
	if len(e.Unanalyzed) > 0 || !e.AutovacuumOn {
		remedy = "turn autovacuum on, and run ANALYZE once; the server analyzes tables that grew each minute"
	}
	add("statistics", Advice, fmt.Sprintf("autovacuum on: %t; large tables that were never analyzed: %d %v",
		e.AutovacuumOn, len(e.Unanalyzed), e.Unanalyzed), remedy)
	return list
}

// examineJobs says whether work waits too long.
func examineJobs(ctx context.Context, conn *pgx.Conn) Finding {
	type waiting struct {
		Waiting   int     `db:"waiting"`
		Failing   int     `db:"failing"`
		Discarded int     `db:"discarded"`
		Seconds   float64 `db:"seconds"`
	}
	w, err := One[waiting](ctx, conn, `
		SELECT count(*) FILTER (WHERE state = 'available')::integer AS waiting,
		       count(*) FILTER (WHERE state = 'retryable')::integer AS failing,
		       count(*) FILTER (WHERE state = 'discarded')::integer AS discarded,
		       coalesce(extract(epoch FROM now() - min(scheduled_at) FILTER (WHERE state = 'available')), 0)::double precision
		           AS seconds
		FROM river_job`)
	if err != nil {
		return Finding{"jobs", Broken, err.Error(), "give the role its rights: 'loci migrate'"}
	}
	remedy := ""
	switch oldest := time.Duration(w.Seconds) * time.Second; {
	case oldest > maxJobWait:
		remedy = fmt.Sprintf("the oldest has waited for %s: see whether a server runs, and its log", oldest)
	case w.Discarded > 0:
		remedy = "those that were given up failed many times: the server's log says why"
	}
	return MakeFinding("jobs", Advice, fmt.Sprintf("%d wait, %d are tried again, %d were given up", w.Waiting, w.Failing,
		w.Discarded), remedy)
}
