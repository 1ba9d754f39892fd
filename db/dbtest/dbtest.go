// Package dbtest gives tests a Postgres. A test gets an organization of its own in a database that the tests of its
// program share. A test about more than one organization gets a database of its own.
//
// Each file uses only the files named before it:
//   - tests and their program: databases.go forget.go program.go
//   - Postgres, its databases, their organizations, and the statements on them: start.go schema.go routing.go
//     statements.go onecluster.go org.go count.go dbtest.go
//   - what tests inspect or wait for: plans.go waiters.go
package dbtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
)

// shared is the Postgres of this test program.
var shared = struct {
	once sync.Once
	server
	err   error
	count atomic.Int64
}{}

// server is a Postgres that tests may fill. url names a database on it, with a user who may create databases. stop ends
// the server.
type server struct {
	url  string
	kind string // where it comes from, as a phrase
	stop func() error
}

// memoryLimit is how many bytes of memory a package's tests use before garbage is collected more often. It is twice
// what ./server keeps alive, so that collecting takes little time.
const memoryLimit = 300 << 20

// Main runs a package's tests, stops their Postgres, and exits. TestMain calls it.
func Main(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400) // with the default, a fifth of ./server's CPU time goes to collecting small heaps
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memoryLimit)
	}
	code := m.Run()
	if program.end() {
		code = max(code, 1)
	}
	common.end()
	if code == 0 && shared.kind != "" {
		if err := statements.check(); err != nil {
			fmt.Fprintln(os.Stderr, "dbtest:", err)
			code = 1
		}
	}
	if shared.stop != nil {
		if err := shared.stop(); err != nil {
			fmt.Fprintln(os.Stderr, "dbtest: stop Postgres:", err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// New returns a pool on a new database, which is dropped at the end of the test. The pool's role has the rights of a
// server and owns nothing; Owner returns the owner. Without a Postgres the test fails; start says where one comes from.
func New(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return connect(t, URL(t))
}

// Owner returns a pool on the database of another pool, as the owning role, a superuser.
func Owner(t testing.TB, pool *pgxpool.Pool) *pgxpool.Pool {
	t.Helper()
	return connect(t, on(shared.url, pool.Config().ConnConfig.Database))
}

func connect(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	sent := &counter{}
	pool, err := db.ConnectWith(context.Background(), thrifty(url), db.Options{Tracer: multitracer.New(&statements, sent)})
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	counters.Store(pool, sent)
	t.Cleanup(func() {
		counters.Delete(pool)
		closeSoon(t, pool)
	})
	return pool
}

// closeSoon closes a pool. If a test has kept one of its connections, the test fails after 10 seconds instead of
// waiting for ever.
func closeSoon(t testing.TB, pool *pgxpool.Pool) {
	closed := make(chan struct{})
	go func() {
		pool.Close()
		close(closed)
	}()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Errorf("dbtest: %d connections were not given back", pool.Stat().AcquiredConns())
	}
}

// URL returns the URL of a new database at the current schema, for the role that serves. The database is dropped at the
// end of the test.
func URL(t testing.TB) string {
	t.Helper()
	return Serving(OwnerURL(t))
}

// OwnerURL returns the URL of a new database at the current schema, for a superuser. The database is dropped at the end
// of the test.
func OwnerURL(t testing.TB) string {
	t.Helper()
	return create(t, template)
}

// Postgres says where the tests' Postgres comes from: "a container of …", "a private Postgres", ….
func Postgres(t testing.TB) string {
	t.Helper()
	if err := begin(); err != nil {
		t.Fatal(err)
	}
	return shared.kind
}

// EmptyURL returns the URL of a new database without a schema, for a superuser. The database is dropped at the end of
// the test.
func EmptyURL(t testing.TB) string {
	t.Helper()
	return create(t, empty)
}

// source names the database that a new one is copied from. It may have to create that template first, on the server of
// conn.
type source func(ctx context.Context, conn *pgx.Conn, serverURL string) (database string, err error)

func empty(context.Context, *pgx.Conn, string) (string, error) { return "template0", nil }

func create(t testing.TB, from source) string {
	t.Helper()
	checkListed(t)
	forget(t)
	name, err := copyOf(from)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(func() {
		if err := drop(name); err != nil {
			t.Errorf("dbtest: drop the database: %v", err)
		}
	})
	return on(shared.url, name)
}

// begin finds or starts the Postgres of this program, once.
func begin() error {
	shared.once.Do(func() { shared.server, shared.err = start() })
	if shared.err != nil {
		return fmt.Errorf("no Postgres for tests: %w", shared.err)
	}
	return nil
}

// copyOf creates a database as a copy, and returns its name.
func copyOf(from source) (name string, err error) {
	if err := begin(); err != nil {
		return "", err
	}
	// The random number avoids the name of a database that a killed test with the same process id left.
	name = fmt.Sprintf("loci_test_%d_%d_%08x", os.Getpid(), shared.count.Add(1), rand.Uint32()) // #nosec G404
	err = admin(shared.url, func(ctx context.Context, conn *pgx.Conn) error {
		original, err := from(ctx, conn, shared.url)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, `CREATE DATABASE `+name+` TEMPLATE `+original+copying(conn))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("create a database: %w", err)
	}
	return name, nil
}

func drop(database string) error {
	return admin(shared.url, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `DROP DATABASE IF EXISTS `+database+` WITH (FORCE)`)
		return err
	})
}

// copying is the option with which Postgres copies a template. Since version 15, Postgres writes the whole copy into
// its log unless it is told to copy the files, which takes a fifth of the CPU time.
func copying(conn *pgx.Conn) string {
	version := conn.PgConn().ParameterStatus("server_version")
	if major, err := strconv.Atoi(leadingDigits(version)); err != nil || major < 15 {
		return ""
	}
	return ` STRATEGY file_copy`
}

func leadingDigits(text string) string {
	return text[:len(text)-len(strings.TrimLeft(text, "0123456789"))]
}

// template returns the database from which the others are copied. It is created once per schema, by whoever comes
// first.
func template(ctx context.Context, conn *pgx.Conn, serverURL string) (string, error) {
	schema, err := fingerprint()
	if err != nil {
		return "", err
	}
	name := "loci_template_" + schema
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(hashtext($1))`, name); err != nil {
		return "", err
	}
	exists, err := hasDatabase(ctx, conn, name)
	if err != nil || exists {
		return name, err
	}
	building := name + "_building"
	for _, sql := range []string{`DROP DATABASE IF EXISTS ` + building,
		`CREATE DATABASE ` + building + ` TEMPLATE template0`} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return "", err
		}
	}
	url := on(serverURL, building)
	if _, err := db.Migrate(ctx, db.URLs{Owner: url, Server: Serving(url)}); err != nil {
		return "", err
	}
	_, err = conn.Exec(ctx, `ALTER DATABASE `+building+` RENAME TO `+name)
	return name, err
}

func hasDatabase(ctx context.Context, conn *pgx.Conn, name string) (exists bool, err error) {
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)`, name).Scan(&exists)
	return exists, err
}

// admin runs fn on a connection to the server's own database, then closes the connection and thereby frees its locks.
func admin(url string, fn func(context.Context, *pgx.Conn) error) error {
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return errors.Join(fn(ctx, conn), conn.Close(ctx))
}

// serving is the name and password of the role that serves. Each Postgres server has one.
const serving = "loci_test_server"

// Serving returns the URL of a database for a role that owns nothing and is no superuser. db.Migrate creates the role
// and gives it its rights.
func Serving(owner string) string { return As(owner, serving) }

// As returns the URL for another role. The role's password is its name.
func As(database, role string) string {
	u, err := url.Parse(database)
	if err != nil {
		return database
	}
	u.User = url.UserPassword(role, role)
	settings := u.Query()
	settings.Del("user")
	settings.Del("password")
	u.RawQuery = settings.Encode()
	return u.String()
}

// on returns the server's URL for another database.
func on(server, database string) string {
	u, err := url.Parse(server)
	if err != nil {
		return server
	}
	u.Path = "/" + database
	return u.String()
}
