package db_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db"
)

// While another session locks a table of messages, no message can be stored. A probe fails, and the doctor says who
// locks which table.
func lockedTableIsTold(t *testing.T, url string) {
	pool, err := db.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	conn, err := db.Dial(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // the test is over
	writes := func() db.Finding {
		found := db.Examine(t.Context(), conn)
		return found[len(found)-1]
	}
	for _, table := range []string{"messages", "agent_heads", "runs", "prompts", "prompt_parts", "river_job"} {
		tx, err := pool.Begin(t.Context())
		if err == nil {
			_, err = tx.Exec(t.Context(), `LOCK TABLE `+table+` IN SHARE MODE`)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.Probe(t.Context(), pool, "test", nil); !db.IsLocked(err) || !db.Unavailable(err) {
			t.Errorf("%s: the probe's error is %v", table, err)
		}
		want := fmt.Sprintf("process %d of Postgres locks %s", tx.Conn().PgConn().PID(), table)
		if f := writes(); f.Of != "writes" || f.State != db.Broken || !strings.Contains(f.Text, want) {
			t.Errorf("%s: the doctor says %+v, want %q", table, f, want)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Probe(t.Context(), pool, "test", nil); err != nil || writes().State != db.Well {
		t.Errorf("afterwards: the probe's error is %v, and the doctor says %+v", err, writes())
	}
}
