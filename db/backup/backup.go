// Package backup writes everything in a database to one file, and restores it into an empty database.
//
// A file is a tar archive, compressed with zstd. It contains header.json, then the rows of each table in
// tables/NAME/000001.copy and the following pieces, then manifest.json. The rows of a table are COPY's text format, in
// the order of the primary key, cut into pieces of at most 4 MiB. A table's checksum is the SHA-256 of its joined
// pieces. The last 40 bytes of the file are a frame that zstd skips; it holds the SHA-256 of all bytes before it.
//
// Each file uses only the files named before it: checksum.go is the end of a backup, backup.go writes one, verify.go
// checks one, former.go takes the rows of a former schema, and
// restore.go loads a backup.
package backup

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/klauspost/compress/zstd"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/migrations"
)

// Format is the version of the file format.
const Format = 1

// Header is the first entry of a file.
type Header struct {
	Format int       `json:"format"`
	Loci   string    `json:"loci"`   // version of the program that wrote the file
	Schema db.Schema `json:"schema"` // schema of the database
	MadeAt time.Time `json:"made_at"`
}

// Manifest is the last entry of a file. It lists the content.
type Manifest struct {
	Header
	Tables    []Table          `json:"tables"`
	Sequences map[string]int64 `json:"sequences"` // sequence → last number
}

// Table describes one table in a file.
type Table struct {
	Name    string   `json:"table"`
	Columns []string `json:"columns"`
	Rows    int64    `json:"rows"`
	Bytes   int64    `json:"bytes"`
	SHA256  string   `json:"sha256"`
}

// notCarried are the tables that a backup leaves out: migrations fill some of them, and running servers the others.
var notCarried = []string{"schema_migrations", "river_migration", "river_leader", "river_notification", "river_queue",
	"room_checks", "probes", "console_sessions"}

const pieceBytes = 4 << 20

// The names of entries in a file.
const (
	headerName   = "header.json"
	manifestName = "manifest.json"
)

// Write writes a whole database as it is at one moment, even if servers write meanwhile. Now and then it calls
// progress, which may be nil, with a table and how many of its bytes are written.
func Write(ctx context.Context, conn *pgx.Conn, to io.Writer, version string, progress func(table string, bytes int64),
) (m Manifest, err error) {
	err = db.Tx(ctx, conn, func(tx pgx.Tx) error {
		m, err = write(ctx, tx, to, version, progress)
		return err
	})
	return m, err
}

func write(ctx context.Context, tx pgx.Tx, to io.Writer, version string, progress func(string, int64)) (m Manifest,
	err error) {
	if _, err := tx.Exec(ctx, `SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY`); err != nil {
		return m, err
	}
	if err := settle(ctx, tx); err != nil {
		return m, err
	}
	if err := db.CheckSchema(ctx, tx.Conn()); err != nil {
		return m, err
	}
	m.Header = Header{Format: Format, Loci: version, MadeAt: time.Now().UTC()}
	if m.Schema, err = db.SchemaOf(ctx, tx.Conn()); err != nil {
		return m, err
	}
	sum := sha256.New()
	packed, err := zstd.NewWriter(io.MultiWriter(to, sum))
	if err != nil {
		return m, err
	}
	archive := tar.NewWriter(packed)
	if err := entry(archive, headerName, m.Header); err != nil {
		return m, err
	}
	if m.Tables, err = tables(ctx, tx); err != nil {
		return m, err
	}
	for i, t := range m.Tables {
		p := &pieces{archive: archive, table: t.Name, sum: sha256.New(), progress: progress}
		rows, err := copyOut(ctx, tx, t, p)
		if err != nil {
			return m, fmt.Errorf("read %s: %w", t.Name, err)
		}
		if err := p.flush(); err != nil {
			return m, err
		}
		m.Tables[i].Rows, m.Tables[i].Bytes, m.Tables[i].SHA256 = rows, p.bytes, hex.EncodeToString(p.sum.Sum(nil))
	}
	if m.Sequences, err = sequences(ctx, tx); err != nil {
		return m, err
	}
	if err := entry(archive, manifestName, m); err != nil {
		return m, err
	}
	if err := archive.Close(); err != nil {
		return m, err
	}
	if err := packed.Close(); err != nil {
		return m, err
	}
	_, err = to.Write(checksumOf(sum))
	return m, err
}

// settle makes the session write values as text in a fixed format.
func settle(ctx context.Context, d db.DB) error {
	_, err := d.Exec(ctx, `
		SELECT set_config('TimeZone', 'UTC', true), set_config('DateStyle', 'ISO', true),
		       set_config('bytea_output', 'hex', true),
		       set_config('IntervalStyle', 'postgres', true), set_config('extra_float_digits', '1', true),
		       set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)`)
	return err
}

func entry(archive *tar.Writer, name string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return put(archive, name, text)
}

func put(archive *tar.Writer, name string, bytes []byte) error {
	err := archive.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: int64(len(bytes)), Typeflag: tar.TypeReg})
	if err == nil {
		_, err = archive.Write(bytes)
	}
	return err
}

// tables lists the tables of Loci that a backup carries, with their columns. It leaves out tables that the operator
// made.
func tables(ctx context.Context, tx pgx.Tx) (list []Table, err error) {
	type row struct {
		Name    string   `db:"name"`
		Columns []string `db:"columns"`
	}
	rows, err := db.All[row](ctx, tx, `
		SELECT c.relname::text AS name, array_agg(a.attname::text ORDER BY a.attnum) AS columns
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
		WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attgenerated = ''
		  AND c.relname <> ALL ($1) AND (c.relname = ANY ($2) OR c.relname ^@ 'river_')
		GROUP BY c.relname
		ORDER BY c.relname COLLATE "C"`, notCarried, migrations.Tables())
	for _, r := range rows {
		list = append(list, Table{Name: r.Name, Columns: r.Columns})
	}
	return list, err
}

// sequences maps each sequence that has been used to its last number.
func sequences(ctx context.Context, tx pgx.Tx) (map[string]int64, error) {
	type row struct {
		Name string `db:"name"`
		Last int64  `db:"last"`
	}
	rows, err := db.All[row](ctx, tx, `
		SELECT sequencename::text AS name, last_value AS last FROM pg_sequences
		WHERE schemaname = 'public' AND last_value IS NOT NULL
		ORDER BY 1`)
	last := map[string]int64{}
	for _, r := range rows {
		last[r.Name] = r.Last
	}
	return last, err
}

// copyOut writes the rows of a table in the order of the primary key. It returns their number.
func copyOut(ctx context.Context, tx pgx.Tx, t Table, to io.Writer) (int64, error) {
	key, err := db.All[string](ctx, tx, `
		SELECT a.attname::text
		FROM pg_index i CROSS JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY AS k (attnum, n)
		JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
		WHERE i.indrelid = $1::text::regclass AND i.indisprimary
		ORDER BY k.n`, quoted(t.Name))
	if err != nil {
		return 0, err
	}
	order := quoted(key...)
	if len(key) == 0 {
		order = "t::text"
	}
	tag, err := tx.Conn().PgConn().CopyTo(ctx, to, fmt.Sprintf(`COPY (SELECT %s FROM %s t ORDER BY %s) TO STDOUT`,
		quoted(t.Columns...), quoted(t.Name), order))
	return tag.RowsAffected(), err
}

// quoted returns names quoted for SQL, separated by commas.
func quoted(names ...string) string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = pgx.Identifier{n}.Sanitize()
	}
	return strings.Join(all, ", ")
}

// pieces writes the rows of a table into an archive, piece by piece.
type pieces struct {
	archive  *tar.Writer
	table    string
	buffer   bytes.Buffer
	sum      hash.Hash
	number   int
	bytes    int64
	progress func(string, int64)
}

// Write implements io.Writer.
func (p *pieces) Write(text []byte) (int, error) {
	n := len(text)
	for len(text) > 0 {
		part := text[:min(len(text), pieceBytes-p.buffer.Len())]
		p.buffer.Write(part)
		text = text[len(part):]
		if p.buffer.Len() == pieceBytes {
			if err := p.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (p *pieces) flush() error {
	if p.buffer.Len() == 0 {
		return nil
	}
	p.number++
	p.bytes += int64(p.buffer.Len())
	p.sum.Write(p.buffer.Bytes())
	err := put(p.archive, pieceName(p.table, p.number), p.buffer.Bytes())
	p.buffer.Reset()
	if p.progress != nil {
		p.progress(p.table, p.bytes)
	}
	return err
}

func pieceName(table string, number int) string {
	return fmt.Sprintf("tables/%s/%06d.copy", table, number)
}

// has reports whether a manifest has a table.
func (m Manifest) has(table string) bool {
	return slices.ContainsFunc(m.Tables, func(t Table) bool { return t.Name == table })
}
