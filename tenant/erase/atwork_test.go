package erase_test

import (
	"testing"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/tenant/erase"
)

// An erasure waits for jobs that may store a text that they read, and not for jobs that make vectors.
func TestWhichJobsAnErasureWaitsFor(t *testing.T) {
	t.Parallel()
	for kind, waits := range map[string]bool{"parse_file": true, "make_handover": true, "embed_files": false,
		"embed_chunks": false, "embed_messages": false, "embed_passages": false, "embed_memory_files": false} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			pool, org := dbtest.Org(t)
			if _, err := pool.Exec(t.Context(), `
				INSERT INTO river_job (kind, queue, state, args, max_attempts, attempted_at, attempted_by)
				VALUES ($1, 'nobody', 'running', jsonb_build_object('org', $2::integer), 1, now(), '{nobody}')`,
				kind, org); err != nil {
				t.Fatal(err)
			}
			store := newStore(t, pool, nil)
			ended := make(chan error, 1)
			go func() {
				_, err := store.Create(t.Context(), org, erase.Request{Texts: []string{"no such text"}})
				ended <- err
			}()
			var e erase.Erasure
			embedtest.Eventually(t, "it waits or ends", func() bool {
				list, err := store.List(t.Context(), org, db.Page{Limit: 1})
				if err != nil {
					t.Fatal(err)
				}
				if len(list) > 0 {
					e = list[0]
				}
				return len(e.Report.AtWork) > 0 || e.Status == erase.Completed
			})
			if got := e.Report.AtWork["jobs"] == 1; got != waits {
				t.Errorf("it waits: got %t, want %t: %+v", got, waits, e)
			}
			if _, err := pool.Exec(t.Context(), `UPDATE river_job SET state = 'completed', finalized_at = now()
				WHERE args @> jsonb_build_object('org', $1::integer)`, org); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
