package server_test

import (
	"testing"
	"time"

	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/server/servertest"
)

// lockedTable locks a table for everybody else, until unlock is called.
func (r runner) lockedTable(table string) (unlock func()) {
	r.t.Helper()
	tx, err := r.pool.Begin(r.t.Context())
	if err == nil {
		_, err = tx.Exec(r.t.Context(), `LOCK TABLE `+table+` IN ACCESS EXCLUSIVE MODE`)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(r.t.Context()); err != nil {
			r.t.Error(err)
		}
	}
}

// A stream whose database does not answer ends with an error that says so.
func TestAStreamWithoutADatabaseSaysWhyItEnds(t *testing.T) {
	t.Parallel()
	r := newRunnerOf(newElsewhereServerClient(t), "")
	r.own().RequestTimeout = 300 * time.Millisecond
	r.Handler = r.server.Handler()
	wait := make(chan struct{})
	r.model.Says(modeltest.Answer{Text: "Done.", Wait: wait})
	reply := make(chan servertest.Reply, 1)
	go func() { reply <- r.call("POST", r.path()+"/stream", `{"input":"Hello","background":true}`) }()
	r.model.Await(t, 1)
	unlock := r.lockedTable("run_items")
	got := <-reply
	unlock()
	close(wait)
	items, names := readStream(t, got.Text)
	if last := items[len(items)-1]; len(names) != 1 || last["error_type"] != "database_unavailable" {
		t.Errorf("the stream is %s", got.Text)
	}
}
