package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

// promise is an upload that was acknowledged.
type promise struct {
	ID      string
	name    string
	content string
}

// chaos is two servers on one database, and the uploads that were acknowledged to their clients.
type chaos struct {
	t       *testing.T
	pool    *pgxpool.Pool
	servers []*serverProcess
	folder  string
	clients int // number of simultaneous clients
	dice    *rand.Rand

	mu       sync.Mutex
	promises map[string]promise  // by file id
	tried    map[string][]string // by name: the replacements that its one client sent, in order
	last     map[string]int      // by name: the index of the last replacement that was acknowledged
}

// Servers are killed at random moments of uploading, parsing, embedding and replacing. Soon after they run again, each
// acknowledged upload exists once and completely, and nothing is left over. LOCI_CHAOS_ROUNDS sets the number of
// rounds; LOCI_CHAOS_SEED repeats a run.
func TestNothingIsLostWhenServersAreKilled(t *testing.T) {
	t.Parallel()
	rounds := number(t, "LOCI_CHAOS_ROUNDS", scale.Of(1, 200))
	seed := chaosSeed(t)
	t.Logf("LOCI_CHAOS_SEED=%d LOCI_CHAOS_ROUNDS=%d", seed, rounds)
	fake := http.Server{Handler: http.HandlerFunc(embedAnything)} //nolint:gosec // on loopback, for a test
	base := listen(t, &fake)
	url := dbtest.OwnerURL(t)
	args := []string{
		"--database-url=" + url,
		"--embedding-base-url=" + base + "/v1",
		"--embedding-model=fake",
		"--log-level=warn",
	}
	c := &chaos{
		t:        t,
		servers:  launchTwo(t, args...),
		clients:  scale.Of(2, 4),
		dice:     rand.New(rand.NewPCG(uint64(seed), 1)), //nolint:gosec // repeatable
		promises: map[string]promise{},
		tried:    map[string][]string{},
		last:     map[string]int{},
	}
	var err error
	if c.pool, err = db.Connect(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.pool.Close)
	c.folder = c.newFolder()
	began := time.Now()
	for round := range rounds {
		c.round(round)
		if t.Failed() {
			t.Fatalf(
				"round %d; repeat with LOCI_CHAOS_SEED=%d\nfirst server:\n%s\nsecond server:\n%s",
				round,
				seed,
				c.servers[0].log,
				c.servers[1].log,
			)
		}
	}
	t.Logf("%d rounds with %d acknowledged uploads in %v", rounds, len(c.promises), time.Since(began).Round(time.Second))
}

// number returns a number from the test's environment.
func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s is %q", name, text)
	}
	return n
}

// chaosSeed returns LOCI_CHAOS_SEED. If it is unset, make test always uses the same seed, and each longer run uses
// another one.
func chaosSeed(t *testing.T) int {
	t.Helper()
	now := int(time.Now().UnixNano() & 0x7fffffff)
	return number(t, "LOCI_CHAOS_SEED", scale.Of(1, now))
}

// embedAnything answers with a vector for each text.
func embedAnything(w http.ResponseWriter, r *http.Request) {
	var ask struct{ Input []string }
	if err := json.NewDecoder(r.Body).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	data := make([]map[string]any, len(ask.Input))
	for i, text := range ask.Input {
		data[i] = map[string]any{"index": i, "embedding": []float32{float32(len(text)), 1, 2, 3}}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
}

func (c *chaos) newFolder() string {
	c.t.Helper()
	p := &program{t: c.t, base: c.servers[0].url()}
	return call[identified](p, "POST", "/v1/folders/", map[string]any{"name": "chaos"}).ID
}

// round uploads from several clients while servers are killed, restarts the servers, and checks the result.
func (c *chaos) round(n int) {
	c.t.Helper()
	ctx, stop := context.WithCancel(c.t.Context())
	defer stop()
	var clients sync.WaitGroup
	for client := range c.clients {
		dice := rand.New(rand.NewPCG(c.dice.Uint64(), uint64(client))) //nolint:gosec // repeatable
		clients.Go(func() { c.client(ctx, dice, client, n) })
	}
	for range 1 + c.dice.IntN(2) {
		db.Pause(ctx, time.Duration(10+c.dice.IntN(400))*time.Millisecond)
		switch killed := c.dice.IntN(3); killed {
		case 2:
			c.servers[0].kill()
			c.servers[1].kill()
			c.servers[0].start()
			c.servers[1].start()
		default:
			c.servers[killed].kill()
			db.Pause(ctx, time.Duration(c.dice.IntN(200))*time.Millisecond)
			c.servers[killed].start()
		}
	}
	restarted := time.Now()
	stop()
	clients.Wait()
	c.settle()
	settled := time.Since(restarted)
	c.check()
	c.t.Logf(
		"round %d: %d acknowledged, complete %v after the restart",
		n,
		len(c.promises),
		settled.Round(time.Millisecond),
	)
}

// client uploads small and large files, new ones and replacements, to one server or the other, until it is stopped.
func (c *chaos) client(ctx context.Context, dice *rand.Rand, client, round int) {
	prefix := fmt.Sprintf("%d-%d", client, round)
	for i := 0; ctx.Err() == nil; i++ {
		name, duplicates := fmt.Sprintf("%s-%d.md", prefix, i), "suffix"
		switch dice.IntN(4) {
		case 0:
			name = "same.md"
		case 1, 2:
			name, duplicates = fmt.Sprintf("replaced-%d-%d.md", client, dice.IntN(2)), "replace"
		}
		content := text(dice, prefix, i)
		index := -1
		if duplicates == "replace" {
			index = c.trying(name, content)
		}
		server := c.servers[dice.IntN(len(c.servers))]
		f, err := sendFile(ctx, server.url()+"/v1/folders/"+c.folder+"/upload?duplicate_handling="+duplicates, name, content)
		if err != nil {
			db.Pause(ctx, 20*time.Millisecond) // the server is gone, and comes back
			continue
		}
		c.mu.Lock()
		c.promises[f.ID] = promise{ID: f.ID, name: f.FileName, content: content}
		if index >= 0 {
			c.last[name] = index
		}
		c.mu.Unlock()
	}
}

// trying records a replacement for a name.
func (c *chaos) trying(name, content string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tried[name] = append(c.tried[name], content)
	return len(c.tried[name]) - 1
}

// text returns a unique document, which is mostly short.
func text(dice *rand.Rand, prefix string, i int) string {
	lines := 1 + dice.IntN(60)
	switch dice.IntN(60) {
	case 0:
		lines = 25_000 // waits in the queue of large files
	case 1, 2, 3, 4:
		lines = 1000 + dice.IntN(3000)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, %d\n\n", prefix, i)
	for line := range lines {
		fmt.Fprintf(&b, "Line %d of %d, by the client %s in its turn %d.\n", line, lines, prefix, i)
	}
	return b.String()
}

// sendFile uploads a file, and reads the acknowledgement completely.
func sendFile(ctx context.Context, url, name, content string) (f stored, err error) {
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, err := w.CreateFormFile("file", name)
	if err == nil {
		_, err = io.WriteString(part, content)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return f, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, &body)
	if err != nil {
		return f, err
	}
	req.Header.Set("Content-Type", w.FormDataContentType())
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return f, err
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil {
		return f, err
	}
	if res.StatusCode != http.StatusOK {
		return f, fmt.Errorf("status %d: %s", res.StatusCode, answer)
	}
	return f, json.Unmarshal(answer, &f)
}

// recovery is how long work may take to end after a restart, or after other work has ended.
const recovery = time.Minute

// progress is the least work that was left, and the time since then.
type progress struct {
	least int
	since time.Time
}

// stalls reports whether no work has ended for too long. left is how much work is left; it is not 0.
func (p *progress) stalls(left int) bool {
	if p.least == 0 || left < p.least {
		p.least, p.since = left, time.Now()
	}
	return time.Since(p.since) > recovery
}

// settle waits until no file is being processed and no job is left.
func (c *chaos) settle() {
	c.t.Helper()
	var work progress
	const left = `
		SELECT (SELECT count(*) FROM files WHERE generation < wanted_generation OR error IS NOT NULL) +
		       (SELECT count(*) FROM embed_batches) +
		       (SELECT count(*) FROM river_job WHERE state IN ('available', 'running', 'retryable', 'scheduled', 'pending'))`
	for {
		n, err := db.One[int](c.t.Context(), c.pool, left)
		if err != nil {
			c.t.Fatal(err)
		}
		if n == 0 {
			return
		}
		if work.stalls(n) || !db.Pause(c.t.Context(), 20*time.Millisecond) {
			c.dump()
			c.t.Fatalf("of %d things in work none has ended for %v", n, recovery)
		}
	}
}

// dump shows the work that does not end.
func (c *chaos) dump() {
	for _, sql := range []string{
		`SELECT row_to_json(j)::text FROM (
			SELECT id, kind, state, queue, args, attempt, attempted_by, attempted_at, scheduled_at, errors FROM river_job
			WHERE state NOT IN ('completed', 'cancelled') LIMIT 10) j`,
		`SELECT row_to_json(f)::text FROM (
			SELECT * FROM files WHERE generation < wanted_generation OR error IS NOT NULL LIMIT 10) f`,
		`SELECT row_to_json(b)::text FROM (SELECT * FROM embed_batches LIMIT 10) b`,
	} {
		rows, err := db.All[string](c.t.Context(), c.pool, sql)
		c.t.Logf("%s (%v)", strings.Join(rows, "\n"), err)
	}
}

// check checks all acknowledged uploads, and looks for leftovers.
func (c *chaos) check() {
	c.t.Helper()
	for _, w := range []struct{ what, sql string }{
		{"duplicate chunks", `SELECT count(*) FROM (SELECT FROM chunks GROUP BY file_key, ordinal HAVING count(*) > 1) d`},
		{"chunks of another generation", `
			SELECT count(*) FROM chunks c JOIN files f ON f.key = c.file_key WHERE c.generation <> f.generation`},
		{"files whose chunks are not as many as they say", `
			SELECT count(*) FROM files f
			LEFT JOIN (SELECT file_key, count(*) AS n FROM chunks GROUP BY file_key) c ON c.file_key = f.key
			WHERE f.chunks <> coalesce(c.n, 0)`},
		{"segments of another generation", `
			SELECT count(*) FROM file_segments g JOIN files f ON f.key = g.file_key WHERE g.generation <> f.generation`},
		{"rows without their file", `
			SELECT (SELECT count(*) FROM chunks x WHERE NOT EXISTS (SELECT FROM files f WHERE f.key = x.file_key)) +
			(SELECT count(*) FROM file_segments x WHERE NOT EXISTS (SELECT FROM files f WHERE f.key = x.file_key)) +
			(SELECT count(*) FROM file_originals x WHERE NOT EXISTS (SELECT FROM files f WHERE f.key = x.file_key)) +
			(SELECT count(*) FROM chunk_vectors x WHERE NOT EXISTS (SELECT FROM chunks c WHERE c.key = x.chunk_key))`},
		{"chunks without a vector", `
			SELECT count(*) FROM chunks c WHERE NOT EXISTS (SELECT FROM chunk_vectors v WHERE v.chunk_key = c.key)`},
		{"originals that are not whole", `
			SELECT count(*) FROM files f JOIN (
				SELECT file_key, sha256(string_agg(bytes, ''::bytea ORDER BY ordinal)) AS sum FROM file_originals GROUP BY file_key
			) o ON o.file_key = f.key WHERE f.sha256 <> o.sum`},
		{"files that still replace another", `SELECT count(*) FROM files WHERE replaces IS NOT NULL`},
		{"names that two files have", `
			SELECT count(*) FROM (SELECT FROM files GROUP BY folder_key, name HAVING count(*) > 1) d`},
	} {
		if n, err := db.One[int](c.t.Context(), c.pool, w.sql); n != 0 || err != nil {
			c.t.Errorf("%d %s (%v)", n, w.what, err)
		}
	}
	for _, v := range c.servers {
		if left, err := filepath.Glob(filepath.Join(v.tmp, "*")); len(left) > 0 || err != nil {
			c.t.Errorf("temporary files are left: %v (%v)", left, err)
		}
	}
	c.checkPromises()
	c.download()
}

// download downloads a file's original and text over the API.
func (c *chaos) download() {
	c.t.Helper()
	p := &program{t: c.t, base: c.servers[c.dice.IntN(2)].url()}
	list := call[[]stored](p, "GET", "/v1/folders/"+c.folder+"/files?limit=1", nil)
	for _, f := range list {
		want, promised := c.promises[f.ID]
		status, original := p.send("GET", "/v1/folders/"+c.folder+"/files/"+f.ID+"/original", nil)
		text := call[struct{ Content string }](
			p,
			"GET",
			"/v1/folders/"+c.folder+"/files/"+f.ID+"?include_content=true",
			nil,
		).Content
		if promised && (status != http.StatusOK || string(original) != want.content || text != want.content) {
			c.t.Errorf(
				"%s: got status %d, %d bytes of original and %d of text, want %d",
				f.FileName,
				status,
				len(original),
				len(text),
				len(want.content),
			)
		}
	}
}

// checkPromises compares the existing files with the uploads. A replaced file is gone. Its name has the last
// acknowledged content, or content that was sent later and stored without an acknowledgement.
func (c *chaos) checkPromises() {
	c.t.Helper()
	type row struct {
		ID   string `db:"id"`
		Name string `db:"name"`
		Text string `db:"text"`
		Sent []byte `db:"sent"`
	}
	rows, err := db.All[row](c.t.Context(), c.pool, `
		SELECT f.id, f.name, g.text, o.sent FROM files f
		LEFT JOIN (SELECT file_key, string_agg(text, '' ORDER BY ordinal) AS text FROM file_segments GROUP BY file_key) g
			ON g.file_key = f.key
		LEFT JOIN (
			SELECT file_key, string_agg(bytes, ''::bytea ORDER BY ordinal) AS sent FROM file_originals GROUP BY file_key
		) o ON o.file_key = f.key
		ORDER BY f.key`)
	if err != nil {
		c.t.Fatal(err)
	}
	byID, byName := map[string]row{}, map[string]row{}
	for _, r := range rows {
		byID[r.ID], byName[r.Name] = r, r
		if p, promised := c.promises[r.ID]; promised && (r.Text != p.content || string(r.Sent) != p.content) {
			c.t.Errorf(
				"%s has %d bytes of text and %d of original, not the %d that were sent",
				r.Name,
				len(r.Text),
				len(r.Sent),
				len(p.content),
			)
		}
	}
	for id, p := range c.promises {
		if c.tried[p.name] == nil && byID[id].ID == "" {
			c.t.Errorf("%s was acknowledged and is not there", p.name)
		}
	}
	for name, last := range c.last {
		if r := byName[name]; !slices.Contains(c.tried[name][last:], r.Text) || r.Text != string(r.Sent) {
			c.t.Errorf("%s, whose replacement was acknowledged, has %.60q", name, r.Text)
		}
	}
}
