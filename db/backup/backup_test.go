package backup_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/backup"
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

// fresh returns the URL of a fresh database, as its owner.
func fresh(t *testing.T) string {
	t.Helper()
	return dbtest.Owner(t, dbtest.New(t)).Config().ConnString()
}

// fill stores rows with values of many types in some tables, of two organizations.
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

// backedUp returns the backup of a filled database.
func backedUp(t *testing.T) (backup.Manifest, []byte) {
	t.Helper()
	conn := dial(t, fresh(t))
	exec(t, conn, fill+`; CREATE TABLE of_the_operator (x int); INSERT INTO of_the_operator VALUES (1)`)
	var file bytes.Buffer
	m, err := backup.Write(t.Context(), conn, &file, "1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	return m, file.Bytes()
}

// Each table of a migrated database is carried, or known not to be.
func TestAllOfLocisTablesAreCarried(t *testing.T) {
	t.Parallel()
	conn := dial(t, fresh(t))
	m, err := backup.Write(t.Context(), conn, io.Discard, "1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	carried := backup.NotCarried
	for _, table := range m.Tables {
		carried = append(slices.Clone(carried), table.Name)
	}
	has, err := db.All[string](t.Context(), conn, `SELECT relname::text FROM pg_class
		WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') AND relname <> ALL ($1)`, carried)
	if err != nil || len(has) > 0 {
		t.Errorf("%q are not carried (%v)", has, err)
	}
}

// A backup is restored into an empty database, whose backup then is the same, and which goes on counting.
func TestARestoredDatabaseIsTheSame(t *testing.T) {
	t.Parallel()
	m, file := backedUp(t)
	empty := dial(t, fresh(t))
	if _, err := backup.Restore(t.Context(), empty, bytes.NewReader(file), nil); err != nil {
		t.Fatal(err)
	}
	var again bytes.Buffer
	got, err := backup.Write(t.Context(), empty, &again, "1.2.3", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(m.Tables, got.Tables); diff != "" {
		t.Errorf("tables (-backed up +restored):\n%s", diff)
	}
	if diff := cmp.Diff(m.Sequences, got.Sequences); diff != "" {
		t.Errorf("sequences (-backed up +restored):\n%s", diff)
	}
	exec(t, empty, `INSERT INTO organizations (name) VALUES ('new')`)
	_, err = empty.Exec(t.Context(), `INSERT INTO agent_heads (org, agent_id, seq) VALUES (1, 'agent-none', 1)`)
	if _, violates := db.Error(err), err != nil; !violates {
		t.Error("a foreign key is not restored")
	}
	_, err = backup.Restore(t.Context(), empty, bytes.NewReader(file), nil)
	if !errors.Is(err, db.ErrConflict) {
		t.Errorf("a second restore: %v", err)
	}
}

// A file that is cut at any place, or of which any bit is another, is refused, and nothing is written.
func TestDamagedFilesAreRefused(t *testing.T) {
	t.Parallel()
	_, file := backedUp(t)
	if _, err := backup.Verify(bytes.NewReader(file), nil); err != nil {
		t.Fatal(err)
	}
	empty := dial(t, fresh(t))
	for n := range 40 {
		at := len(file) * n / 40
		altered := bytes.Clone(file)
		altered[at] ^= 0x10
		for name, bad := range map[string][]byte{"cut": file[:at], "altered": altered} {
			_, err := backup.Verify(bytes.NewReader(bad), nil)
			if !errors.Is(err, db.ErrInvalid) {
				t.Errorf("a file that is %s at byte %d of %d: %v", name, at, len(file), err)
			}
		}
	}
	for name, bad := range map[string][]byte{"empty": nil, "cut at its end": file[:len(file)-1],
		"of another kind": []byte("PK\x03\x04")} {
		if _, err := backup.Restore(t.Context(), empty, bytes.NewReader(bad), nil); !errors.Is(err, db.ErrInvalid) {
			t.Errorf("the restore of a file that is %s: %v", name, err)
		}
	}
	if n, err := db.One[int](t.Context(), empty, `SELECT count(*) FROM agents`); err != nil || n != 0 {
		t.Errorf("a refused file left %d agents: %v", n, err)
	}
}

// A backup is of one state of the database, while others write to it.
func TestABackupIsOfOneState(t *testing.T) {
	t.Parallel()
	url := fresh(t)
	conn, writer := dial(t, url), dial(t, url)
	exec(t, conn, fill)
	var file bytes.Buffer
	wrote := false
	m, err := backup.Write(t.Context(), conn, &file, "1.2.3", func(table string, _ int64) {
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
			t.Errorf("the backup has %d organizations, one of which was made later (%s)", table.Rows, fmt.Sprint(wrote))
		}
	}
}
