package dbtest

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/multitracer"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
)

// common is the database that the tests of a program share, with one pool for all.
var common commonDatabase

type commonDatabase struct {
	once sync.Once
	name string // empty if it stays after the tests
	pool *pgxpool.Pool
	err  error
}

// commonConns is enough for all tests that run at the same time, and their goroutines.
const commonConns = 64

// Org returns a new organization, and the pool of the database that this program's tests share. Other tests use the
// database and the pool at the same time. A test that counts statements or breaks connections takes Pool instead. A
// test of rows that belong to no organization takes New.
func Org(t testing.TB) (*pgxpool.Pool, db.Org) {
	t.Helper()
	pool := common.open(t)
	return pool, NewOrg(t, pool)
}

// NewOrg creates an organization in a database.
func NewOrg(t testing.TB, d db.DB) db.Org {
	t.Helper()
	forget(t)
	org, err := db.One[db.Org](context.Background(), d, `
		INSERT INTO organizations (name) VALUES ('test ' || gen_random_uuid()) RETURNING org`)
	if err != nil {
		t.Fatalf("dbtest: create an organization: %v", err)
	}
	return org
}

// SharedURL returns the URL of the database that this program's tests share, for the role that serves.
func SharedURL(t testing.TB) string {
	t.Helper()
	return Serving(on(shared.url, common.open(t).Config().ConnConfig.Database))
}

// Pool returns a pool that only this test uses, on the database that this program's tests share.
func Pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return connect(t, SharedURL(t))
}

func (c *commonDatabase) open(t testing.TB) *pgxpool.Pool {
	t.Helper()
	c.once.Do(func() { c.pool, c.err = c.create() })
	if c.err != nil {
		t.Fatalf("dbtest: the shared database: %v", c.err)
	}
	return c.pool
}

func (c *commonDatabase) create() (*pgxpool.Pool, error) {
	name, stays, err := spreadDatabase()
	if err == nil && !stays {
		name, err = copyOf(template)
		c.name = name
	}
	if err != nil {
		return nil, err
	}
	url := fmt.Sprintf("%s&pool_max_conns=%d", thrifty(Serving(on(shared.url, name))), commonConns)
	return db.ConnectWith(context.Background(), url, db.Options{Tracer: multitracer.New(&statements)})
}

// thrifty adds pool settings to a URL, so that the pool soon closes unused connections. Each connection takes 11 MB in
// Postgres.
func thrifty(database string) string {
	return database + "&pool_max_conn_idle_time=15s&pool_health_check_period=2s"
}

// URLOf returns the URL of a pool's database without settings that only pools know. A program or a single connection
// can use it.
func URLOf(pool *pgxpool.Pool) string {
	u, err := url.Parse(pool.Config().ConnString())
	if err != nil {
		panic(err) // the pool was opened with it
	}
	settings := u.Query()
	maps.DeleteFunc(settings, func(name string, _ []string) bool { return strings.HasPrefix(name, "pool_") })
	u.RawQuery = settings.Encode()
	return u.String()
}

// end closes the pool and drops the database. Nobody needs the database any more, so an error is only printed.
func (c *commonDatabase) end() {
	if c.pool != nil {
		c.pool.Close()
	}
	if c.name != "" {
		if err := drop(c.name); err != nil {
			fmt.Println("dbtest: drop the shared database:", err)
		}
	}
}
