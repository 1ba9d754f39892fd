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

// everyones is the server that the tests of this package share. It runs in the test's process on the database that they
// share, owns nothing there, and has neither embeddings nor a language model.
var everyones struct {
	once sync.Once
	*program
}

// tenant returns the server that the tests of this package share, with a key of a new organization. Other tests use the
// server at the same time.
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

// linesOf returns the lines of a server's log without those of requests with another key than the one named.
func linesOf(log, key string) string {
	var own strings.Builder
	for line := range strings.Lines(log) {
		if !strings.Contains(line, " key=key-") || strings.Contains(line, " key="+key) {
			own.WriteString(line)
		}
	}
	return own.String()
}

// sharedURL returns the URL of the database that tests share, as the role that serves.
func sharedURL(t testing.TB) string {
	t.Helper()
	pool, _ := dbtest.Org(t)
	return dbtest.URLOf(pool)
}

// keyOf makes a key.
func keyOf(t testing.TB, d db.DB, n apikey.NewKey) (secret, id string) {
	t.Helper()
	secret, key, err := (&apikey.Store{DB: d}).Create(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return secret, key.ID
}

// asking returns the arguments of a command with the flags that make it ask the server with the program's key.
func (p *program) asking(args ...string) []string {
	return append(slices.Clip(args), "--addr="+p.base, "--api-key="+p.key)
}

// remote returns the settings of a command that asks the server with the program's key.
func (p *program) remote() remote { return remote{Addr: p.base, APIKey: secret(p.key)} }
