package db

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
)

// Times of the shares of connections.
const (
	ConnectionLingers  = connectionLingers
	ConnectionPatience = connectionPatience
	ConnectionYields   = connectionYields
)

// NewContendedShares returns shares that work like those of connections.
func NewContendedShares(total, reserve, contended int64) *Shares {
	s := NewShares(total, reserve)
	s.contended, s.lingers, s.patience = contended, connectionLingers, connectionPatience
	s.yields = connectionYields
	return s
}

// ConnectTimeout returns how long one attempt to connect to a database may take.
func ConnectTimeout(url string) (time.Duration, error) {
	config, err := parse(url)
	if err != nil {
		return 0, err
	}
	return config.ConnConfig.ConnectTimeout, nil
}

// KeepConnection returns the error handler of a pool's connections.
func KeepConnection(changed, rebuilt func()) func(*pgconn.PgConn, *pgconn.PgError) bool {
	return keepConnection(changed, rebuilt)
}

// BeginPatiently returns the context of a statement, and a function that ends the statement. works says what a look at
// its session finds.
func BeginPatiently(ctx context.Context, works func() bool) (of context.Context, end func()) {
	t := &patient{func(context.Context, uint32) bool { return works() }}
	of = t.begin(ctx, 1)
	return of, func() { t.end(of) }
}

// SessionWorks reports whether a session of a pool's database works, in the way that it is checked when a patience
// ends.
func SessionWorks(ctx context.Context, pool *pgxpool.Pool, pid uint32) bool {
	return looker(pool.Config().ConnConfig)(ctx, pid)
}

// DeletedTables returns the tables whose rows Delete deletes: it does more than a DELETE.
func DeletedTables() (tables []string) {
	for table := range traces {
		tables = append(tables, table)
	}
	for table := range countedTables {
		tables = append(tables, table)
	}
	return tables
}

// ApplyMigration applies a migration as Migrate does, without its version.
func ApplyMigration(url, migration string) error {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return err
	}
	pool := stdlib.OpenDB(*config)
	return errors.Join((&statementwise{pool: pool}).Run(strings.NewReader(migration)), pool.Close())
}
