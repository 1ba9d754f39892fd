package lettadb

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
)

// NotLettaError says that a database does not belong to a Letta server.
type NotLettaError struct{ lacks string }

func (e *NotLettaError) Error() string {
	return "the database is not a Letta server's: it has no table " + e.lacks + ". Name the one that Letta's " +
		"LETTA_PG_URI names, with a user who may read its tables"
}

// source is a Letta server's database, in a transaction that sees one snapshot.
type source struct {
	conn   *pgx.Conn
	tx     pgx.Tx
	tables []string // names of the existing tables
	head   string   // Letta's last migration
}

// open connects to a Letta database.
func open(ctx context.Context, dsn string) (_ *source, err error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		// An invalid address may contain a password anywhere, so neither the address nor the error is shown.
		return nil, db.Invalid("--dsn is no address of a Postgres, such as postgres://letta:password@host:5432/letta")
	}
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = 15 * time.Second
	}
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("reach the database of --dsn: %w", err)
	}
	s := &source{conn: conn}
	defer func() {
		if err != nil {
			s.close(ctx)
		}
	}()
	if s.tx, err = conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}); err != nil {
		return nil, err
	}
	_, err = s.tx.Exec(ctx, `
		SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true),
		       set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`)
	if err != nil {
		return nil, err
	}
	return s, s.check(ctx)
}

// check returns a *NotLettaError unless the tables are Letta's.
func (s *source) check(ctx context.Context) (err error) {
	s.tables, err = db.All[string](ctx, s.tx, `
		SELECT table_name::text FROM information_schema.tables
		WHERE table_schema = ANY (current_schemas(false)) AND table_type = 'BASE TABLE'
		ORDER BY 1`)
	if err != nil {
		return err
	}
	for _, t := range []string{"alembic_version", "organizations", "agents", "messages", "block", "blocks_agents"} {
		if !slices.Contains(s.tables, t) {
			return &NotLettaError{t}
		}
	}
	s.head, err = db.One[string](ctx, s.tx, `SELECT coalesce(min(version_num), '') FROM alembic_version`)
	return err
}

// has reports whether the database has a table. Databases of older servers lack some.
func (s *source) has(table string) bool { return slices.Contains(s.tables, table) }

func (s *source) close(ctx context.Context) {
	_ = s.conn.Close(context.WithoutCancel(ctx)) // nothing was written
}

// read yields the rows of a query as JSON. An error is the last thing that it yields.
func (s *source) read(ctx context.Context, sql string, args ...any) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		rows, err := s.tx.Query(ctx, `SELECT row_to_json(r)::text FROM (`+sql+`) r`, args...)
		if err != nil {
			yield(nil, err)
			return
		}
		defer rows.Close()
		for rows.Next() {
			var text []byte
			if err := rows.Scan(&text); err != nil || !yield(text, nil) {
				if err != nil {
					yield(nil, err)
				}
				return
			}
		}
		if err := rows.Err(); err != nil {
			yield(nil, err)
		}
	}
}

// row holds the columns that Letta's tables share.
type row struct {
	ID        string
	CreatedAt *lettaTime `json:"created_at"`
	UpdatedAt *lettaTime `json:"updated_at"`
	IsDeleted bool       `json:"is_deleted"`
}

func (r row) deleted() bool { return r.IsDeleted }

// created returns when the row was created; the epoch for old rows without a time.
func (r row) created() time.Time {
	for _, t := range []*lettaTime{r.CreatedAt, r.UpdatedAt} {
		if t != nil {
			return t.Time
		}
	}
	return time.Unix(0, 0).UTC()
}

func (r row) updated() time.Time {
	if r.UpdatedAt != nil {
		return r.UpdatedAt.Time
	}
	return r.created()
}

// lettaTime is a time, with or without an offset from UTC.
type lettaTime struct{ time.Time }

// UnmarshalJSON implements json.Unmarshaler. Times that Go cannot represent, such as infinity, become the epoch.
func (t *lettaTime) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999"} {
		if parsed, err := time.Parse(layout, text); err == nil {
			t.Time = parsed
			return nil
		}
	}
	t.Time = time.Unix(0, 0).UTC()
	return nil
}

// rowOf is a row of a table that marks deleted rows.
type rowOf interface{ deleted() bool }

// each yields the rows of a table that are not marked as deleted. It counts all rows.
func each[T rowOf](ctx context.Context, r *run, table, sql string, args ...any) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		if !r.from.has(table) {
			return
		}
		for raw, err := range r.from.read(ctx, sql, args...) {
			var v T
			if err == nil {
				r.report.read(table, raw)
				if err = json.Unmarshal(raw, &v); err != nil {
					err = fmt.Errorf("read %s of the source: %w", table, err)
				}
			}
			if err == nil && v.deleted() {
				r.report.table(table).Deleted++
				continue
			}
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// list returns all rows that each yields.
func list[T rowOf](ctx context.Context, r *run, table, sql string, args ...any) (all []T, err error) {
	for v, err := range each[T](ctx, r, table, sql, args...) {
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

// plainName returns a name without characters that names may not have; if nothing is left, it returns fallback.
func plainName(name, fallback string) string {
	name = strings.TrimSpace(strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == '\uFFFD' {
			return ' '
		}
		return c
	}, db.Clean(name)))
	if name == "" {
		return fallback
	}
	return name
}

// clipped returns at most the first chars characters of a text.
func clipped(text string, chars int) string {
	if runes := []rune(text); len(runes) > chars {
		return strings.TrimSpace(string(runes[:chars]))
	}
	return text
}

// object returns a JSON object without characters that Postgres cannot store; nil for any other JSON value.
func object(raw json.RawMessage) json.RawMessage {
	text := strings.TrimSpace(cleanEscapes(string(raw)))
	if !strings.HasPrefix(text, "{") {
		return nil
	}
	return json.RawMessage(text)
}
