package main

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/tenant/apikey"
)

// everyones is the server that this package's tests share. It runs in the test process on the shared database, owns
// nothing there, and has no embeddings and no language model.
var everyones struct {
	once sync.Once
	*program
}

// tenant returns the shared server with a key of a new organization. Other tests use the server at the same time.
func tenant(t testing.TB) *program {
	t.Helper()
	pool, org := dbtest.Org(t)
	everyones.once.Do(func() {
		everyones.program = serveAs(dbtest.Program(), "--database-url="+sharedURL(t))
	})
	key, id := keyOf(t, pool, apikey.NewKey{In: org, Name: "test", Scopes: []string{apikey.Write, apikey.Admin}})
	p := &program{t: t, base: everyones.base, key: key, log: everyones.log}
	began := len(p.log.String())
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the shared server's log, but for the requests of other tests:\n%s", linesOf(p.log.String()[began:], id))
		}
	})
	return p
}

// linesOf returns the lines of a server's log, without lines of requests with other keys.
func linesOf(log, key string) string {
	var own strings.Builder
	for line := range strings.Lines(log) {
		if !strings.Contains(line, " key=key-") || strings.Contains(line, " key="+key) {
			own.WriteString(line)
		}
	}
	return own.String()
}

// sharedURL returns the shared database's URL with the role for serving.
func sharedURL(t testing.TB) string {
	t.Helper()
	pool, _ := dbtest.Org(t)
	return dbtest.URLOf(pool)
}

// keyOf creates a key.
func keyOf(t testing.TB, d db.DB, n apikey.NewKey) (secret, id string) {
	t.Helper()
	secret, key, err := (&apikey.Store{DB: d}).Create(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return secret, key.ID
}

// asking returns a command's arguments with flags for the program's server and key.
func (p *program) asking(args ...string) []string {
	return append(slices.Clip(args), "--addr="+p.base, "--api-key="+p.key)
}

// remote returns a command's settings with the program's server and key.
func (p *program) remote() remote { return remote{Addr: p.base, APIKey: secret(p.key)} }
