package erase_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/files"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/tenant/erase"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// newStore returns a store that erases at once.
func newStore(t *testing.T, pool, owner *pgxpool.Pool) *erase.Store {
	t.Helper()
	filed, err := files.New(pool, files.Options{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	messages := recall.New(pool, recall.Options{})
	return &erase.Store{DB: pool, Owner: owner, Recall: messages, Files: filed,
		Archival:    archival.New(pool, archival.Options{}),
		MemoryFiles: memoryfile.New(pool, memoryfile.Options{Redactor: messages.Redactor})}
}

// plantRows makes rows with a word, samples of their columns, and one table that has become empty since.
func plantRows(t *testing.T, owner *pgxpool.Pool, org db.Org, word string) {
	t.Helper()
	for _, sql := range []string{
		`INSERT INTO folders (org, name, description) VALUES ($1, 'about ' || $2, $2), ($1, gen_random_uuid(), 'other')`,
		`INSERT INTO identities (org, identifier_key, name, identity_type, properties)
			VALUES ($1, $2, $2, 'user', '[]')`,
		`INSERT INTO identities (org, identifier_key, name, identity_type, properties)
			VALUES ($1, 'b' || $2, $2, 'user', '[]')`,
		`ANALYZE folders, identities`,
		`DELETE FROM identities WHERE org = $1 AND name = $2`,
	} {
		args := []any{org, word}
		if strings.HasPrefix(sql, "ANALYZE") {
			args = nil
		}
		if _, err := owner.Exec(t.Context(), sql, args...); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// member returns a pool of a role with the owner's rights that is no superuser.
func member(t *testing.T, owner *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	const role = "loci_test_member"
	if _, err := owner.Exec(t.Context(), `DO $$ BEGIN
			CREATE ROLE `+role+` LOGIN PASSWORD '`+role+`';
		EXCEPTION WHEN duplicate_object THEN NULL; END $$;
		DO $$ BEGIN EXECUTE format('GRANT %I TO `+role+`', current_user); END $$`); err != nil {
		t.Fatal(err)
	}
	pool, err := db.Connect(t.Context(), dbtest.As(owner.Config().ConnString(), role))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pool.Close()
		if _, err := owner.Exec(context.Background(), `DROP ROLE `+role); err != nil {
			t.Error(err)
		}
	})
	return pool
}

// withWord returns the columns with a word in Postgres' samples, and the relations with the word in their files.
func withWord(t *testing.T, owner *pgxpool.Pool, word string) (samples, files []string) {
	t.Helper()
	samples, err := db.All[string](t.Context(), owner, `
		SELECT tablename || '.' || attname FROM pg_stats
		WHERE concat_ws(' ', most_common_vals::text, histogram_bounds::text, most_common_elems::text) LIKE '%' || $1 || '%'`,
		word)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owner.Exec(t.Context(), `CHECKPOINT`); err != nil {
		t.Fatal(err)
	}
	files, err = db.All[string](t.Context(), owner, `
		SELECT relname FROM pg_class
		WHERE pg_relation_filepath(oid) IS NOT NULL AND pg_relation_size(oid) < 100000000
		  AND position(convert_to($1, 'UTF8') IN pg_read_binary_file(pg_relation_filepath(oid), 0, 100000000, true)) > 0
		ORDER BY relname`, word)
	if err != nil {
		t.Fatal(err)
	}
	return samples, files
}

// After an erasure, no file of a table and none of Postgres' samples has the word, except where the report says so. The
// test runs alone, because other tests would use the tables.
func TestWhatAnErasureLeavesInFilesIsNamed(t *testing.T) { //nolint:paralleltest // as said
	pool, org := dbtest.Org(t)
	owner := dbtest.Owner(t, pool)
	erased := func(t *testing.T, word string, owner *pgxpool.Pool) string {
		t.Helper()
		e, err := newStore(t, pool, owner).Create(t.Context(), org, erase.Request{Texts: []string{word},
			Reason: "for " + word})
		if err != nil || e.Status != erase.Completed || e.EndedAt == nil || e.Texts != nil {
			t.Fatalf("the erasure: %+v, %v", e, err)
		}
		return strings.Join(e.Report.Remains, "\n")
	}

	t.Run("where the server knows the owner, nothing is left", func(t *testing.T) {
		const word = "Qzoraquillone"
		plantRows(t, owner, org, word)
		if samples, files := withWord(t, owner, word); len(samples) < 3 || len(files) < 3 {
			t.Fatalf("the word is planted in %q and %q only", samples, files)
		}
		remains := erased(t, word, owner)
		if samples, files := withWord(t, owner, word); len(samples)+len(files) > 0 {
			t.Errorf("samples %q and files %q have the word", samples, files)
		}
		if strings.Contains(remains, "VACUUM") || strings.Contains(remains, "pg_statistic") {
			t.Errorf("the report names what was written anew: %s", remains)
		}
	})

	t.Run("where the owner is no superuser, samples of empty tables are named", func(t *testing.T) {
		const word = "Qzoraquillfour"
		plantRows(t, owner, org, word)
		remains := erased(t, word, member(t, owner))
		samples, files := withWord(t, owner, word)
		if slices.ContainsFunc(samples, func(s string) bool { return !strings.HasPrefix(s, "identities.") }) {
			t.Errorf("samples of tables with rows have the word: %q", samples)
		}
		if len(files) > 0 && !slices.Equal(files, []string{"pg_statistic"}) {
			t.Errorf("files have the word: %q", files)
		}
		if len(samples) > 0 && !strings.Contains(remains, "'identities'::regclass") ||
			strings.Contains(remains, "'folders'::regclass") {
			t.Errorf("samples %q have the word, and the report says %s", samples, remains)
		}
	})

	t.Run("where another session may read old rows, the tables are named", func(t *testing.T) {
		const word = "Qzoraquilltwo"
		plantRows(t, owner, org, word)
		err := pgx.BeginTxFunc(t.Context(), owner, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `SELECT count(*) FROM agents`); err != nil {
				return err
			}
			remains := erased(t, word, owner)
			_, files := withWord(t, owner, word)
			if len(files) == 0 {
				t.Error("no file has the word: the session reads nothing old")
			}
			for _, name := range []string{"erasures", "folders", "pg_statistic"} {
				if !strings.Contains(remains, name) {
					t.Errorf("the report lacks %s: %s", name, remains)
				}
			}
			if strings.Contains(remains, "word_postings") {
				t.Errorf("the report names a table without old rows: %s", remains)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})

	t.Run("where the server knows no owner, it tries nothing and says what stays", func(t *testing.T) {
		const word = "Qzoraquillthree"
		plantRows(t, owner, org, word)
		node := func() (n uint32) {
			if err := owner.QueryRow(context.Background(), `SELECT pg_relation_filenode('folders')`).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := node()
		remains := erased(t, word, nil)
		if node() != before {
			t.Error("a table was written anew")
		}
		for _, want := range []string{"erasures, folders", "statistics", "DELETE FROM pg_statistic", "VACUUM (FULL, ANALYZE)",
			"LOCI_DATABASE_OWNER_URL"} {
			if !strings.Contains(remains, want) {
				t.Errorf("the report lacks %q: %s", want, remains)
			}
		}
	})
}
