package main

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
)

// The dump is of a database with the last schema before the baseline. Programs of earlier versions had filled it with
// the demonstration, the walk of its README, a deleted folder, a consumer of events, and messages, passages and a file
// that wait for vectors. testdata/upgrade also holds their answers. A server takes the database over, but not while a
// server of an earlier version works.
func TestADatabaseOfAnEarlierVersionIsTakenOver(t *testing.T) {
	t.Parallel()
	url := dbtest.EmptyURL(t)
	restore(t, url, "testdata/upgrade/schema-0087.sql.gz")
	isNotMigratedBesideAServer(t, url)
	endpoint := listen(t, &http.Server{Handler: http.HandlerFunc(embedAnything), ReadHeaderTimeout: patience})
	p := serve(t, "--database-url="+url, "--embedding-base-url="+endpoint+"/v1", "--embedding-model=bag-of-words")
	if diff := cmp.Diff(schemaOf(t, sharedURL(t)), schemaOf(t, url)); diff != "" {
		t.Errorf("the schema is not that of a new database (-new +upgraded):\n%s", diff)
	}
	agents := call[[]identified](p, "GET", "/v1/agents/?name=operator", nil)
	if len(agents) != 1 {
		t.Fatalf("there are %d agents named operator, want 1", len(agents))
	}
	agent := agents[0].ID
	got := call[any](p, "GET", "/v1/agents/"+agent+"/messages?limit=100", nil)
	if diff := cmp.Diff(recorded[any](t, "messages.json"), got); diff != "" {
		t.Errorf("the messages differ from before (-before +now):\n%s", diff)
	}
	type request struct{ Messages []any }
	now := call[struct{ Request request }](p, "GET", "/v1/agents/"+agent+"/prompt?format=openai", nil).Request
	before := recorded[request](t, "request.json")
	said := slices.DeleteFunc(now.Messages, func(m any) bool { // the state was in the system message
		content, _ := m.(map[string]any)["content"].(string)
		return strings.HasPrefix(content, "<current_state>")
	})
	if diff := cmp.Diff(before.Messages[1:], said[1:]); diff != "" {
		t.Errorf("the prompt after its system message differs from before (-before +now):\n%s", diff)
	}
	p.finds(agent)
	p.waitsForNoVectors(agent)
}

// isNotMigratedBesideAServer checks that nothing migrates a schema of version 87 while a server works on it.
func isNotMigratedBesideAServer(t *testing.T, url string) {
	t.Helper()
	server := connect(t, url)
	if _, err := server.Exec(t.Context(), `SELECT pg_advisory_lock($1, 7)`, int32(db.LockServer)); err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf("loci: the database has schema version 87, and this program needs version %s, but a server of "+
		"Loci is at work on it (connected as Postgres' process %d): stop every server of Loci on this database, then try "+
		"again\n", schemaVersion(t), server.PgConn().PID())
	for _, args := range [][]string{{"migrate"}, {"serve", "--addr=127.0.0.1:0"}, {"keys", "list"}} {
		code, _, errs := command(t, append(args, "--database-url="+url)...)
		if code != 1 || errs != want {
			t.Errorf("%v ended with %d: %s", args, code, cmp.Diff(want, errs))
		}
	}
	if err := server.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// finds checks that the tools still find everything that was stored, even the rows that waited for vectors.
func (p *program) finds(agent string) {
	p.t.Helper()
	onCall := []map[string]any{{"file_name": "handbook/on-call.md"}}
	for _, c := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"conversation_search", map[string]any{"query": "Where are the spare disks?"}, "behind the lift"},
		{"archival_memory_search", map[string]any{"query": "Who keeps the escrow code?"}, "kept by Grace"},
		{"archival_memory_search", map[string]any{"query": "When does the valve open?"}, "nine bar"},
		{"semantic_search_files", map[string]any{"query": "no space left on the disk"}, "oldest backups"},
		{"grep_files", map[string]any{"pattern": "waits for its vectors"}, "late.md"},
		{"open_files", map[string]any{"file_requests": onCall}, "* Opened handbook/on-call.md"},
	} {
		if got := p.tool(agent, c.tool, c.args); !strings.Contains(got.Text, c.want) {
			p.t.Errorf("%s %v answers %q, want it to contain %q", c.tool, c.args, got.Text, c.want)
		}
	}
}

// waitsForNoVectors waits until every file, conversation and archive has all its vectors.
func (p *program) waitsForNoVectors(agent string) {
	p.t.Helper()
	type waiting struct {
		Vectors *struct{ Pending, Refused int } `json:"embedding_status"`
	}
	for deadline := time.Now().Add(patience); ; {
		pending := 0
		for _, path := range []string{"/v1/archives/?agent_id=" + agent, "/v1/conversations/?agent_id=" + agent} {
			for _, one := range call[[]waiting](p, "GET", path, nil) {
				if one.Vectors == nil {
					pending++
				} else {
					pending += one.Vectors.Pending
				}
			}
		}
		if pending == 0 {
			break
		}
		if time.Now().After(deadline) || !db.Pause(p.t.Context(), 20*time.Millisecond) {
			p.t.Fatalf("%d texts still wait for their vectors:\n%s", pending, p.log)
		}
	}
	for _, folder := range call[[]identified](p, "GET", "/v1/folders/", nil) {
		for name, f := range p.await(folder.ID) {
			if f.Status != "completed" || f.ErrorMessage != "" {
				p.t.Errorf("file %s is %s: %s", name, f.Status, f.ErrorMessage)
			}
		}
	}
}

// recorded decodes an answer of the earlier program.
func recorded[T any](t *testing.T, name string) (out T) {
	t.Helper()
	text, err := os.ReadFile("testdata/upgrade/" + name)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// restore runs a compressed dump in an empty database.
func restore(t *testing.T, url, path string) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	sql, err := io.ReadAll(unzipped)
	if err != nil {
		t.Fatal(err)
	}
	execute(t, url, string(sql))
}

// execute runs statements in a database.
func execute(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
		t.Fatalf("%.200s: %v", sql, err)
	}
}

// schemaOf lists the parts of the schema of a database, without indexes for a single model's vectors.
func schemaOf(t *testing.T, url string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	parts, err := db.Catalogue(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(parts, func(part string) bool { return strings.Contains(part, "USING hnsw") })
}

// texts returns the single column of a query's rows.
func texts(t *testing.T, url, sql string) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), sql)
	if err != nil {
		t.Fatal(err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return list
}
