package backup_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/backup"
	"github.com/loci-memory/loci/db/cluster"
	"github.com/loci-memory/loci/db/dbtest"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

func dial(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := db.Dial(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func exec(t *testing.T, conn *pgx.Conn, sql string) {
	t.Helper()
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

// fill stores rows with values of many types, of two organizations.
const fill = `
	INSERT INTO organizations (name) VALUES (E'b\t\\N \u00fc');
	INSERT INTO agents (org, name, agent_type, system, tags)
	SELECT o.org, 'a' || n, 't', E'a\nb\t\\.\n' || repeat('x', n * 37), ARRAY['', 'NULL', '"']
	FROM organizations o, generate_series(1, 50) n;
	INSERT INTO agent_heads (org, agent_id, seq) SELECT org, id, 3 FROM agents;
	INSERT INTO events (org, agent_id, seq, type, ref_id, at)
	SELECT org, id, n, 'agent_updated', id, '2024-05-01T10:00:00.123456Z' FROM agents, generate_series(1, 3) n;
	INSERT INTO blobs (org, sha256, size_bytes, zstd, bytes)
	SELECT 1, sha256(n::text::bytea), 3, false, decode(repeat('00ff0a5c', 700000), 'hex') FROM generate_series(1, 2) n;
	INSERT INTO embedding_spaces (provider, model, dimension) VALUES ('p', 'm', 3);
	INSERT INTO archives (org, name) VALUES (1, 'c');
	INSERT INTO passages (org, archive_key, text, sha256, lex, terms)
	SELECT 1, key, 'text ' || n, sha256(n::text::bytea), '{1:0.25,7:1}/16777216', ARRAY[1, 7]
	FROM archives, generate_series(1, 3) n;
	UPDATE passages SET valid_until = now(), superseded_by = (SELECT max(key) FROM passages)
	WHERE key = (SELECT min(key) FROM passages);
	INSERT INTO passage_vectors (space_id, passage_key, org, archive_key, tags, happened_at, embedding)
	SELECT s.id, p.key, 1, p.archive_key, '{}', now(), '[0.1,0.33333,-65504]'::halfvec FROM passages p, embedding_spaces s`

// filled is a database with rows, its backup, and another database without rows.
type filled struct {
	url      string
	conn     *pgx.Conn
	manifest backup.Manifest
	file     []byte
	empty    *pgx.Conn
}

// The parts of this test run one after the other, on two databases that no other test uses, because a backup contains
// all organizations.
func TestABackup(t *testing.T) {
	t.Parallel()
	f := &filled{url: dbtest.OwnerURL(t), empty: dial(t, dbtest.OwnerURL(t))}
	f.conn = dial(t, f.url)
	exec(t, f.conn, fill+`; CREATE TABLE of_the_operator (x int); INSERT INTO of_the_operator VALUES (1)`)
	var file bytes.Buffer
	var err error
	if f.manifest, err = backup.Write(t.Context(), f.conn, &file, "1.2.3", nil); err != nil {
		t.Fatal(err)
	}
	f.file = file.Bytes()
	t.Run("all of Loci's tables are carried", f.carriesAllTables)
	t.Run("damaged files are refused", f.damagedFilesAreRefused)
	t.Run("a restored database is the same", f.restoredDatabaseIsTheSame)
	t.Run("it is of one state", f.isOfOneState)
	t.Run("a former one is restored", formerBackupIsRestored)
	t.Run("a cluster gets one before it is spread", f.isRestoredIntoACluster)
}

// A backup of one Postgres is restored on the coordinator of a cluster, and then spread. So is one of the cluster.
func (f *filled) isRestoredIntoACluster(t *testing.T) {
	t.Parallel()
	url, ok := dbtest.SpreadURL(t)
	if !ok {
		return
	}
	if _, err := db.Migrate(t.Context(), db.URLs{Owner: url, Server: dbtest.Serving(url)}); err != nil {
		t.Fatal(err)
	}
	conn := dial(t, url)
	if _, err := backup.Restore(t.Context(), conn, bytes.NewReader(f.file), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Run(t.Context(), conn, cluster.Options{Shards: 2}); err != nil {
		t.Fatal(err)
	}
	got, err := backup.Write(t.Context(), conn, io.Discard, "1.2.3", nil)
	if diff := cmp.Diff(f.manifest.Tables, got.Tables); err != nil || diff != "" {
		t.Errorf("a backup of the cluster: %v\n%s", err, diff)
	}
	_, err = backup.Restore(t.Context(), conn, bytes.NewReader(f.file), nil)
	if !errors.Is(err, db.ErrConflict) || !strings.Contains(err.Error(), "loci migrate spread") {
		t.Errorf("a restore into a spread database: got %v", err)
	}
}

// Each table of a migrated database is in the backup, or listed as left out.
func (f *filled) carriesAllTables(t *testing.T) {
	carried := append(slices.Clone(backup.NotCarried), "of_the_operator")
	for _, table := range f.manifest.Tables {
		carried = append(carried, table.Name)
	}
	missing, err := db.All[string](t.Context(), f.conn, `SELECT relname::text FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname <> ALL ($1)`, carried)
	if err != nil || len(missing) > 0 {
		t.Errorf("%q are not carried (%v)", missing, err)
	}
}

// A backup of a restored database equals the first backup. The restored database goes on counting its keys.
func (f *filled) restoredDatabaseIsTheSame(t *testing.T) {
	if _, err := backup.Restore(t.Context(), f.empty, bytes.NewReader(f.file), nil); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	got, err := backup.Write(t.Context(), f.empty, &again, "1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f.manifest.Tables, got.Tables); diff != "" {
		t.Errorf("tables (-backed up +restored):\n%s", diff)
	}
	if diff := cmp.Diff(f.manifest.Sequences, got.Sequences); diff != "" {
		t.Errorf("sequences (-backed up +restored):\n%s", diff)
	}
	exec(t, f.empty, `INSERT INTO organizations (name) VALUES ('new')`)
	_, err = f.empty.Exec(t.Context(), `INSERT INTO agent_heads (org, agent_id, seq) VALUES (1, 'agent-none', 1)`)
	if !errors.Is(db.Error(err), db.ErrNotFound) {
		t.Errorf("a foreign key is not restored: %v", err)
	}
	_, err = backup.Restore(t.Context(), f.empty, bytes.NewReader(f.file), nil)
	if !errors.Is(err, db.ErrConflict) {
		t.Errorf("a second restore: %v", err)
	}
}

// If a file is cut anywhere, or any bit is changed, it is refused, and nothing is written.
func (f *filled) damagedFilesAreRefused(t *testing.T) {
	file := f.file
	if _, err := backup.Verify(bytes.NewReader(file), nil); err != nil {
		t.Fatal(err)
	}
	for n := range 40 {
		position := len(file) * n / 40
		altered := bytes.Clone(file)
		altered[position] ^= 0x10
		for name, bad := range map[string][]byte{"cut": file[:position], "altered": altered} {
			_, err := backup.Verify(bytes.NewReader(bad), nil)
			if !errors.Is(err, db.ErrInvalid) {
				t.Errorf("a file that is %s at byte %d of %d: %v", name, position, len(file), err)
			}
		}
	}
	for name, bad := range map[string][]byte{"empty": nil, "cut at its end": file[:len(file)-1],
		"of another kind": []byte("PK\x03\x04")} {
		if _, err := backup.Restore(t.Context(), f.empty, bytes.NewReader(bad), nil); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("the restore of a file that is %s: %v", name, err)
		}
	}
	if n, err := db.One[int](t.Context(), f.empty, `SELECT count(*) FROM agents`); err != nil || n != 0 {
		t.Errorf("a refused file left %d agents: %v", n, err)
	}
}

// A backup that a program with the last schema before the baseline wrote is restored, with its quotas.
func formerBackupIsRestored(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/former-0087.backup")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	conn := dial(t, dbtest.OwnerURL(t))
	m, err := backup.Restore(t.Context(), conn, file, nil)
	if err != nil || m.Schema.Version != 87 {
		t.Fatalf("%+v, %v", m.Schema, err)
	}
	for _, table := range m.Tables {
		if n, err := db.One[int64](t.Context(), conn, `SELECT count(*) FROM `+table.Name); n != table.Rows || err != nil {
			t.Errorf("%s has %d rows, %v; the backup has %d", table.Name, n, err, table.Rows)
		}
	}
	quotas, err := db.All[string](t.Context(), conn, `
		SELECT concat_ws(' ', agents, stored_bytes, requests_per_month) FROM quotas`)
	if err != nil || !slices.Equal(quotas, []string{"50 5000000 1000000"}) {
		t.Errorf("the quotas are %q, %v", quotas, err)
	}
	fresh := dial(t, dbtest.OwnerURL(t))
	want, err := db.Catalogue(t.Context(), fresh)
	if err != nil {
		t.Fatal(err)
	}
	got, err := db.Catalogue(t.Context(), conn)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("the schema is not that of a new database (-new +restored): %v\n%s", err, diff)
	}
	if _, err := backup.Write(t.Context(), conn, io.Discard, "1.2.3", nil); err != nil {
		t.Errorf("a backup of the restored database: %v", err)
	}
}

// A backup shows one state of the database, even while others write to it.
func (f *filled) isOfOneState(t *testing.T) {
	writer := dial(t, f.url)
	wrote := false
	m, err := backup.Write(t.Context(), f.conn, io.Discard, "1.2.3", func(string, int64) {
		if !wrote {
			wrote = true
			exec(t, writer, `INSERT INTO organizations (name) VALUES ('late')`)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range m.Tables {
		if table.Name == "organizations" && (table.Rows != 2 || !wrote) {
			t.Errorf("the backup has %d organizations, one of which was made later (%t)", table.Rows, wrote)
		}
	}
}
