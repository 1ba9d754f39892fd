package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/db/local"
)

// newHome returns a directory for a private Postgres, which may run as another user.
func newHome(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("", "loci-home-")
	if err == nil {
		err = os.Chmod(home, 0o711) //nolint:gosec // Postgres' user must be able to enter it
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	return home
}

// postmaster returns the main process of the private Postgres in home.
func postmaster(t testing.TB, home string) int {
	t.Helper()
	var text []byte
	for len(text) == 0 { // the file is missing, or is being written, while one process replaces another
		var err error
		if text, err = os.ReadFile(filepath.Join(home, "postgres", "postmaster.pid")); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
		if len(text) == 0 && !db.Pause(t.Context(), 20*time.Millisecond) {
			t.Fatal("no Postgres is started")
		}
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// backends returns the processes of a Postgres that serve other connections.
func backends(t *testing.T, conn *pgx.Conn) (pids []int) {
	t.Helper()
	rows, err := conn.Query(t.Context(), `
		SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() ORDER BY pid`)
	if err == nil {
		pids, err = pgx.CollectRows(rows, pgx.RowTo[int])
	}
	if err != nil || len(pids) == 0 {
		t.Fatalf("nobody is connected (%v)", err)
	}
	return pids
}

// connect connects to a Postgres until the test ends.
func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// send sends a signal to processes. Some of them may have ended.
func send(t testing.TB, sig syscall.Signal, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Fatalf("send %v to %d: %v", sig, pid, err)
		}
	}
}

// refused checks that an answer is a 503 that says why.
func refused(t testing.TB, what string, status int, answer []byte) {
	t.Helper()
	var problem struct{ Detail string }
	if err := json.Unmarshal(answer, &problem); err != nil || status != http.StatusServiceUnavailable ||
		!strings.HasPrefix(problem.Detail, "The database does not answer") {
		t.Errorf("%s: got %d %s (%v)", what, status, answer, err)
	}
}

// recovers waits until requests are answered again. Until then, each must be refused.
func (p *program) recovers(folder string) {
	p.t.Helper()
	deadline := time.Now().Add(patience)
	for answered := 0; answered < 20; { // each connection of the pool may be a broken one
		status, answer := p.send("GET", "/v1/folders/"+folder+"/files", nil)
		if status == http.StatusOK {
			answered++
			continue
		}
		answered = 0
		refused(p.t, "meanwhile", status, answer)
		if time.Now().After(deadline) || !db.Pause(p.t.Context(), 20*time.Millisecond) || p.t.Failed() {
			p.t.Fatal("requests are not answered again")
		}
	}
}

func (p *program) uploads(folder, name string, n int) {
	p.t.Helper()
	for i := range n {
		call[stored](
			p,
			"POST",
			"/v1/folders/"+folder+"/upload",
			fileForm(p.t, fmt.Sprintf("%s-%d.md", name, i), bytes.Repeat([]byte("some words\n"), 2000)),
		)
	}
}

// completed checks that all of a folder's files are complete. Requests may still be refused meanwhile.
func (p *program) completed(folder string, n int) {
	p.t.Helper()
	list := p.awaitWith(folder, func(method, path string) (page []stored, ok bool) {
		status, answer := p.send(method, path, nil)
		if status == http.StatusServiceUnavailable {
			refused(p.t, "meanwhile", status, answer)
			return nil, false
		}
		if err := json.Unmarshal(answer, &page); err != nil || status != http.StatusOK {
			p.t.Fatalf("%s %s: got %d %s (%v)", method, path, status, answer, err)
		}
		return page, true
	})
	for name, f := range list {
		if f.Status != "completed" {
			p.t.Errorf("%s is %+v", name, f)
		}
	}
	if len(list) != n {
		p.t.Errorf("%d files are there, want %d", len(list), n)
	}
}

// Postgres is stopped, one of its processes is killed, and it hangs. Requests are refused with a reason, and afterwards
// everything goes on by itself.
func TestTheServerOutlivesItsDatabase(t *testing.T) {
	t.Parallel()
	scale.Long(t)
	home := newHome(t)
	pg, err := local.Start(
		t.Context(),
		local.Options{Home: home, Bin: os.Getenv("LOCI_POSTGRES_BIN"), Settings: map[string]string{"fsync": "off"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pg.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	p := serve(t, "--database-url="+pg.URL(), "--request-timeout=20s", "--log-level=error")
	folder := call[identified](p, "POST", "/v1/folders/", map[string]any{"name": "f"}).ID

	p.uploads(folder, "stopped", 10)
	send(t, syscall.SIGINT, postmaster(t, home))
	<-pg.Done()
	status, answer := p.send("GET", "/v1/folders/"+folder, nil)
	refused(t, "while it is stopped", status, answer)
	status, answer = p.send("POST", "/v1/folders/"+folder+"/upload", fileForm(t, "a.md", []byte("text")))
	refused(t, "an upload while it is stopped", status, answer)
	if err := pg.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	p.recovers(folder)
	p.completed(folder, 10)
	if n := strings.Count(p.log.String(), "\n"); n == 0 || n > 6 { // some come before the outage is noticed
		t.Errorf("the log has %d lines of errors about one outage:\n%s", n, p.log)
	}

	p.uploads(folder, "killed", 10)
	send(t, syscall.SIGKILL, backends(t, connect(t, pg.URL()))[0])
	p.recovers(folder)
	p.completed(folder, 20)

	p.uploads(folder, "hung", 10)
	conn, main := connect(t, pg.URL()), postmaster(t, home)
	send(t, syscall.SIGSTOP, main) // so that no other process begins
	pids := append(backends(t, conn), main)
	send(t, syscall.SIGSTOP, pids...)
	status, answer = p.send("GET", "/v1/folders/"+folder, nil)
	send(t, syscall.SIGCONT, pids...)
	refused(t, "while it hangs", status, answer)
	p.recovers(folder)
	p.completed(folder, 30)
}

// An endpoint that hangs does not delay the start.
func TestAnEndpointThatHangsDelaysNothing(t *testing.T) {
	t.Parallel()
	hung := make(chan struct{})
	fake := http.Server{
		Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { //nolint:gosec // on loopback, for a test
			select {
			case <-hung:
			case <-r.Context().Done():
			}
		}),
	}
	base := listen(t, &fake)
	t.Cleanup(func() { close(hung) })
	p := serveAs(t, "--database-url="+sharedURL(t), "--embedding-base-url="+base+"/v1", "--embedding-model=m",
		"--log-level=error")
	p.key = tenant(t).key
	folder := call[identified](p, "POST", "/v1/folders/", map[string]any{"name": "f"}).ID
	p.uploads(folder, "a", 1)
}
