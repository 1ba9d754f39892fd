package main

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// A server regains its lost lock, and finds no schema, for example because a backup is being restored. The server waits
// for the schema. If the schema has another version, the server ends.
func TestAServerOutlivesARebuiltSchema(t *testing.T) {
	t.Parallel()
	url := dbtest.OwnerURL(t)
	conn, log := connect(t, url), newLines()
	p := &process{serveCmd: &serveCmd{}, log: slog.New(slog.NewTextHandler(log, nil)), id: "rebuilt",
		pg: opened{urls: db.URLs{Server: dbtest.Serving(url)}}}
	ready, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- p.keepPresent(t.Context(), ready) }()
	<-ready
	change := func(version string) { // also cuts the connection that holds the lock
		_, err := conn.Exec(t.Context(), `UPDATE schema_migrations SET version = `+version)
		if err == nil {
			_, err = conn.Exec(t.Context(), `
				SELECT pg_terminate_backend(pid) FROM pg_locks
				WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND classid = $1::bigint::oid
				  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, int64(db.LockServer))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	change("0")
	log.await(t, "it has no schema", func(text string) bool { return strings.Contains(text, "has no schema of Loci") })
	change("9999")
	if schemaErr, ok := errors.AsType[*db.SchemaError](<-ended); !ok || !schemaErr.IsAnother() {
		t.Errorf("the server ends with %v", schemaErr)
	}
}
