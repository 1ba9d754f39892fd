package db

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Finding is the result of examining one thing.
type Finding struct {
	Of     string `json:"of"`    // the thing: postgres, pgvector, schema, …
	State  State  `json:"state"` // ok, advice or broken
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"` // what to do about it; empty if the thing is well
}

// State says how well a thing is.
type State string

// The states of a Finding.
const (
	Well   State = "ok"
	Advice State = "advice" // it works, but could work better
	Broken State = "broken"
)

// MakeFinding returns a finding. With an empty remedy its state is Well, else otherwise.
func MakeFinding(of string, otherwise State, text, remedy string) Finding {
	if remedy == "" {
		otherwise = Well
	}
	return Finding{of, otherwise, text, remedy}
}

// Limits beyond which an examination gives advice.
const (
	maxClockSkew  = 5 * time.Second
	maxJobWait    = 10 * time.Minute
	minUnanalyzed = 10_000 // rows
	minShared     = 128 << 20
)

// examined holds what the catalog and the settings of a database say.
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

// Examine examines a database, and says what to do about anything that is not well. It returns errors as findings,
// except the error of ctx.
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
		schema = Finding{"schema", Broken, err.Error(), cmp.Or(grantCreate(ctx, conn),
			"run 'loci migrate', or start 'loci serve' as the schema's owner")}
	} else if err := checkRights(ctx, conn); err != nil {
		schema = Finding{"schema", Broken, err.Error(), "run 'loci migrate' as it says"}
	}
	list := append(e.findings(time.Since(asked)), schema)
	if schema.State == Well {
		list = append(list, examineJobs(ctx, conn), examineWrites(ctx, conn))
	}
	return list
}

// grantCreate returns the remedy if conn's role may not create the schema in an empty database. It returns "" if the
// role may, or if there is a schema.
func grantCreate(ctx context.Context, conn *pgx.Conn) string {
	sql, err := One[string](ctx, conn, `
		SELECT format('GRANT CREATE ON SCHEMA %I TO %I', current_schema(), current_user)
		WHERE to_regclass('schema_migrations') IS NULL AND NOT has_schema_privilege(current_schema(), 'CREATE')`)
	if err != nil {
		return ""
	}
	return "the database is empty, and the role " + conn.Config().User + " lacks the privilege CREATE on its schema: " +
		"let the schema's owner run " + sql + ", or set LOCI_DATABASE_OWNER_URL to the URL of a role that has it"
}

// ExamineOwner says whether the role of u.Owner can change the schema of u.Server's database.
func ExamineOwner(ctx context.Context, u URLs) Finding {
	conn, err := Dial(ctx, u.Owner)
	if err != nil {
		return Finding{"owner", Broken, err.Error(), ReachRemedy(err, "LOCI_DATABASE_OWNER_URL")}
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := checkSameDatabase(ctx, conn, u); err != nil {
		return Finding{"owner", Broken, err.Error(), ""}
	}
	owns, err := Owns(ctx, conn)
	if err != nil {
		return Finding{"owner", Broken, err.Error(), "see what it says, and Postgres' log"}
	}
	text := fmt.Sprintf("the schema is changed as the role %s", conn.Config().User)
	if owns {
		return Finding{"owner", Well, text, ""}
	}
	return Finding{"owner", Broken, text + ", which does not own it", cmp.Or(grantCreate(ctx, conn),
		"let LOCI_DATABASE_OWNER_URL name the role that owns Loci's tables")}
}

// ReachRemedy says what to do if the database cannot be reached by the URL in a setting.
func ReachRemedy(err error, setting string) string {
	pg, answered := errors.AsType[*pgconn.PgError](err)
	if !answered {
		return "see that Postgres runs, and that " + setting + " names its host and port"
	}
	switch pg.Code {
	case pgerrcode.InvalidPassword:
		return "the password is not the role's, or there is no such role: correct " + setting + ", or let a superuser run " +
			"ALTER ROLE … PASSWORD '…'"
	case pgerrcode.InvalidAuthorizationSpecification:
		return "Postgres does not let this role in: correct the role in " + setting + ", or let a superuser create it with " +
			"LOGIN, and see that pg_hba.conf lets it in from this machine"
	case pgerrcode.InvalidCatalogName:
		return "Postgres runs and has no database of this name: correct it in " + setting + ", or let a superuser run " +
			"CREATE DATABASE … OWNER …"
	case pgerrcode.InsufficientPrivilege:
		return "let the owner of the database run GRANT CONNECT ON DATABASE … TO … for the role of " + setting
	case pgerrcode.TooManyConnections:
		return "raise max_connections, or lower the servers' pools by pool_max_conns in LOCI_DATABASE_URL"
	case pgerrcode.CannotConnectNow:
		return "wait: Postgres starts or stops, and its log says why"
	}
	return "see what it says, and Postgres' log"
}

// findings judges the values in e. took is how long the query for them took.
func (e examined) findings(took time.Duration) (list []Finding) {
	skew := (time.Since(e.Now) - took).Abs()
	for _, thing := range []struct {
		of           string
		otherwise    State // state if it is not well
		well         bool
		text, remedy string
	}{
		{"postgres", Broken, e.Version >= 150000, "version " + e.VersionText + ", " + e.Size,
			"Loci needs Postgres 15 or newer"},
		{"pgvector", Broken, e.Vector != nil && atLeast(*e.Vector, minPgvector), "version " + orNone(e.Vector),
			"let a superuser run CREATE EXTENSION vector, or install " + minPgvector + " or newer and run ALTER EXTENSION " +
				"vector UPDATE"},
		{"role", Advice, !e.Superuser, fmt.Sprintf("the server works as %s (superuser: %t)", e.Role, e.Superuser),
			"let the server work as a role that owns nothing: see Roles in docs/operations.md"},
		{"durability", Broken, e.Fsync == "on" && e.FullPages == "on",
			"fsync " + e.Fsync + ", full_page_writes " + e.FullPages,
			"set fsync and full_page_writes to on: without them a crash of the machine loses acknowledged writes"},
		{"clock", Advice, skew <= maxClockSkew,
			fmt.Sprintf("differs from this machine's by %s at most", (skew + took).Round(time.Millisecond)),
			"set the clocks by NTP: validity, expiry of keys and retention go by them"},
		{"memory", Advice, e.SharedBytes >= minShared, fmt.Sprintf("shared_buffers is %d MiB", e.SharedBytes>>20),
			"set shared_buffers to a quarter of the machine's memory"},
		{"connections", Advice, e.Connections-e.Connected >= maxConns,
			fmt.Sprintf("%d of %d are in use", e.Connected, e.Connections),
			fmt.Sprintf("raise max_connections, or lower the servers' pools by pool_max_conns in LOCI_DATABASE_URL: one "+
				"server uses %d and two more", maxConns)},
		{"indexes", Advice, len(e.Broken) == 0, "not valid: " + namesOrNone(e.Broken),
			"an index that was being built was interrupted: the server builds it anew within minutes, or 'loci migrate'"},
		{"statistics", Advice, len(e.Unanalyzed) == 0 && e.AutovacuumOn,
			fmt.Sprintf("autovacuum is on: %t; large tables without: %s", e.AutovacuumOn, namesOrNone(e.Unanalyzed)),
			"turn autovacuum on, and run ANALYZE once; the server analyzes tables that grew"},
	} {
		if thing.well {
			thing.remedy = ""
		}
		list = append(list, MakeFinding(thing.of, thing.otherwise, thing.text, thing.remedy))
	}
	return list
}

// namesOrNone joins names by commas, or returns "none".
func namesOrNone(names []string) string { return cmp.Or(strings.Join(names, ", "), "none") }

func orNone(text *string) string {
	if text == nil {
		return "none"
	}
	return *text
}

// examineJobs says whether jobs wait too long.
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
