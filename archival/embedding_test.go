package archival_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
)

// denseFixture is a fixture with an endpoint that embeds its passages.
type denseFixture struct {
	*fixture
	server   *embedtest.Endpoint
	endpoint *endpoint.Endpoint
	space    endpoint.Space
}

func newDenseFixture(t *testing.T, e *embedtest.Endpoint) *denseFixture {
	t.Helper()
	f := &denseFixture{fixture: newFixture(t)}
	f.connect(e)
	return f
}

// use gives the fixture a store with an endpoint.
func (f *denseFixture) use(e *embedtest.Endpoint) {
	f.Helper()
	f.server, f.endpoint = e, e.Endpoint(f)
	f.endpoint.FirstPause, f.endpoint.MaxPause = time.Millisecond, 20*time.Millisecond
	var err error // another test's endpoint may have had the same URL
	if f.space, err = endpoint.UseSpace(f.Context(), f.pool, fmt.Sprintf("%s of %d", e.URL, f.org), "fake",
		e.Dimension); err != nil {
		f.Fatal(err)
	}
	f.endpoint.Use(f.space)
	f.store = archival.New(f.pool, archival.Options{Endpoint: f.endpoint})
	f.store.SetSettle(0)
}

// connect calls use, and queues this organization's passages as a starting server does.
func (f *denseFixture) connect(e *embedtest.Endpoint) {
	f.Helper()
	f.use(e)
	if err := archival.BackfillOrg(f.store, f.Context(), f.org); err != nil {
		f.Fatal(err)
	}
}

// connectAll calls use, and queues the passages of all organizations.
func (f *denseFixture) connectAll(e *embedtest.Endpoint) {
	f.Helper()
	f.use(e)
	if _, err := f.store.Queue().Backfill(f.Context(), 0); err != nil {
		f.Fatal(err)
	}
}

// work runs a server's jobs for all organizations of the database, until stop is called or the test ends.
func (f *denseFixture) work() (stop func()) {
	f.Helper()
	return embedtest.Work(f, f.pool, f.store.Queue(), f.store.Queue().Queues())
}

// count runs a query that returns one number.
func (f *fixture) count(sql string, args ...any) int {
	f.Helper()
	n, err := db.One[int](f.Context(), f.pool, sql, args...)
	if err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
	return n
}

// settled waits until no passage waits, and checks that all but without have vectors in the current space.
func (f *denseFixture) settled(without int) {
	f.Helper()
	embedtest.Eventually(f, "no passage waits", func() bool {
		return f.count(`
			SELECT (SELECT count(*) FROM unembedded_passages WHERE org = $1 AND refused IS NULL) + (
				SELECT count(*) FROM archives
				WHERE org = $1 AND embedded_space IS DISTINCT FROM $2 AND deleted_at IS NULL)`, f.org, f.space.ID) == 0
	})
	got, want := f.count(`SELECT count(*) FROM passage_vectors WHERE org = $1 AND space_id = $2`, f.org, f.space.ID),
		f.rows("passages")-without
	if got != want {
		f.Errorf("%d vectors in space %d, want %d", got, f.space.ID, want)
	}
	if n := f.rows("unembedded_passages"); n != without {
		f.Errorf("%d passages go without a vector, want %d", n, without)
	}
	if n := f.count(`
		SELECT count(*) FROM passage_vectors v JOIN passages p ON p.org = v.org AND p.key = v.passage_key
		WHERE v.org = $1 AND (v.archive_key, v.tags, v.happened_at, v.valid_from, v.valid_until)
		      IS DISTINCT FROM (p.archive_key, p.tags, p.happened_at, p.valid_from, p.valid_until)`, f.org); n != 0 {
		f.Errorf("%d vectors tell something else of their passage", n)
	}
}

// notes inserts n passages into the agent's archive.
func (f *fixture) notes(n int) (archive string) {
	f.Helper()
	var texts []string
	for i := range n {
		texts = append(texts, fmt.Sprintf("note %d about topic %d, after %d others", i, i%7, f.noted))
		f.noted++
	}
	return f.insert(texts...)[0].ArchiveID
}

// status returns how far an archive's vectors are.
func (f *fixture) status(archive string) *endpoint.Status {
	f.Helper()
	c, err := f.store.Archive(f.Context(), f.org, archive)
	if err != nil {
		f.Fatal(err)
	}
	return c.Vectors
}

// The queue works for all organizations, so each of these tests takes a database of its own. A test empties its
// database, and a later test uses it again.
func TestQueueOfPassages(t *testing.T) {
	t.Parallel()
	free := make(chan *pgxpool.Pool, 100)
	database := func(user *testing.T) *pgxpool.Pool {
		var pool *pgxpool.Pool
		select {
		case pool = <-free:
		default:
			pool = dbtest.New(t)
		}
		user.Cleanup(func() {
			for _, table := range []string{"river_job", "passages", "agent_archives", "archives", "embedding_spaces"} {
				if _, err := pool.Exec(context.Background(), `DELETE FROM `+table); err != nil {
					user.Error(err)
				}
			}
			free <- pool
		})
		return pool
	}
	embedtest.TestQueue(t, func(t *testing.T) *embedtest.Memory {
		f, archive := &denseFixture{fixture: newFixtureIn(t, database(t))}, ""
		return &embedtest.Memory{
			Pool: f.pool, Vectors: "passage_vectors",
			Connect: func(e *embedtest.Endpoint, settle time.Duration) { f.connectAll(e); f.store.SetSettle(settle) },
			Queue:   func() embedtest.Queue { return f.store.Queue() },
			Write: func(calls int) {
				for range calls {
					archive = f.notes(2)
				}
			},
			Found: func() bool {
				last := fmt.Sprintf("after %d others", f.noted-1)
				got := f.found(archival.Query{Text: last})
				return len(got) > 0 && strings.Contains(got[0], last)
			},
			Status: func() *endpoint.Status { return f.status(archive) }, Settled: func() { f.settled(0) },
		}
	})
}

// Passages inserted without an endpoint are embedded once there is one, in every archive of every organization. The
// test therefore has a database of its own.
func TestArchivesAreBackfilled(t *testing.T) {
	t.Parallel()
	pool := dbtest.New(t)
	f, other := &denseFixture{fixture: newFixtureIn(t, pool)}, &denseFixture{fixture: newFixtureIn(t, pool)}
	archive := f.notes(150)
	if got := f.status(archive); got != nil {
		t.Errorf("without an endpoint the archive's status is %+v", got)
	}
	for i := range 10 {
		if _, err := f.store.Insert(t.Context(), f.org, f.archive(fmt.Sprint("archive ", i)).ID,
			[]archival.Draft{{Text: "one", Tags: []string{"x"}}, {Text: "two"}}); err != nil {
			t.Fatal(err)
		}
	}
	other.notes(3)
	gone := f.archive("gone")
	if err := f.store.DeleteArchive(t.Context(), f.org, gone.ID); err != nil {
		t.Fatal(err)
	}
	f.connectAll(embedtest.New(t, 8))
	f.work()
	other.space = f.space
	f.settled(0)
	other.settled(0)
	f.store = archival.New(f.pool, archival.Options{}) // a server without an endpoint, next to one with an endpoint
	f.notes(3)
	f.settled(0)
}

// The newest waiting passages are embedded first.
func TestNewPassagesAreEmbeddedFirst(t *testing.T) {
	t.Parallel()
	f := newDenseFixture(t, embedtest.New(t, 8))
	f.endpoint.JobTexts = 10
	f.notes(10)
	f.notes(10)
	f.embedded(f.notes(10))
	for i, numbers := range [][2]int{{20, 29}, {10, 19}, {0, 9}} {
		asked := f.server.Asked()[i]
		for _, number := range numbers {
			if !slices.ContainsFunc(asked, func(text string) bool {
				return strings.HasSuffix(text, fmt.Sprintf(" after %d others", number))
			}) {
				t.Errorf("batch %d lacks passage %d: %q", i, number, asked)
			}
		}
	}
}

// A passage that the endpoint refuses has no vector and is counted. It is tried again after its text changes. The other
// passages get their vectors.
func TestARefusedPassageHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	e.Refuse = "forbidden"
	f := newDenseFixture(t, e)
	archive := f.notes(40)
	refused := f.insert("this is forbidden")[0]
	f.insert(strings.Repeat("allowed words ", 200) + "forbidden")
	f.embedded(archive)
	f.settled(1)
	if got := f.status(archive); got.Refused != 1 || got.Error == nil || !strings.Contains(*got.Error,
		"some passages get no vector (") {
		t.Errorf("the archive's status is %+v", got)
	}
	if got := f.found(archival.Query{Text: "what is forbidden", Limit: 1}); len(got) != 1 || got[0] != refused.Text {
		t.Errorf("by its words: got %q", got)
	}
	text := "this is welcome"
	if _, err := f.store.UpdatePassage(t.Context(), f.org, archival.Of(f.agent), refused.ID,
		archival.PassageUpdate{Text: &text}); err != nil {
		t.Fatal(err)
	}
	f.embedded(archive)
	f.settled(0)
	f.insert("another forbidden text")
	f.embedded(archive)
	f.settled(1)
	f.connect(embedtest.New(t, 16))
	f.embedded(archive)
	f.settled(0)
	e.Refuse = ""
	asked := len(slices.Concat(e.Asked()...))
	f.connect(e)
	f.embedded(archive)
	f.settled(0)
	if n := len(slices.Concat(e.Asked()...)) - asked; n != 1 {
		t.Errorf("going back to a model takes %d texts, want the one that was refused", n)
	}
}

// A passage with a new text is not found by the meaning of its old text. A search by meaning sees new tags and
// deletions.
func TestVectorsFollowTheirPassages(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 64)
	f := newDenseFixture(t, e)
	p := f.insert("velo locked behind the library", "tea is hot", "snow is cold")
	archive := p[0].ArchiveID
	once := func() {
		t.Helper()
		if err := archival.EmbedOnce(f.store, t.Context(), f.org, archive); err != nil {
			t.Fatal(err)
		}
		f.settled(0)
	}
	once()
	text := "the car is at the workshop"
	if _, err := f.store.UpdatePassage(t.Context(), f.org, archival.Of(f.agent), p[0].ID,
		archival.PassageUpdate{Text: &text}); err != nil {
		t.Fatal(err)
	}
	if n := f.rows("passage_vectors"); n != 2 {
		t.Errorf("%d vectors beside a changed text, want 2", n)
	}
	if _, err := f.store.UpdatePassage(t.Context(), f.org, archival.Of(f.agent), p[1].ID,
		archival.PassageUpdate{Tags: []string{"drink"}}); err != nil {
		t.Fatal(err)
	}
	if n := f.rows("passage_vectors"); n != 2 {
		t.Errorf("%d vectors beside changed tags, want 2", n)
	}
	once()
	if err := f.store.DeletePassage(t.Context(), f.org, archival.Of(f.agent), p[2].ID); err != nil {
		t.Fatal(err)
	}
	f.settled(0)
	if err := f.store.DeleteArchive(t.Context(), f.org, archive); err != nil {
		t.Fatal(err)
	}
	f.clear()
	if n := f.rows("passage_vectors"); n != 0 {
		t.Errorf("%d vectors are left of a deleted archive", n)
	}
}

// A passage that changes while the endpoint embeds it gets no vector of its old text.
func TestChangesWhileEmbedding(t *testing.T) {
	t.Parallel()
	text := "another text"
	for _, c := range []struct {
		name   string
		change func(f *denseFixture, p archival.Inserted) error
		left   int // vectors at the end
	}{
		{"a passage is deleted", func(f *denseFixture, p archival.Inserted) error {
			return f.store.DeletePassage(context.Background(), f.org, archival.Of(f.agent), p.ID)
		}, 10},
		{"a text is changed", func(f *denseFixture, p archival.Inserted) error {
			_, err := f.store.UpdatePassage(context.Background(), f.org, archival.Of(f.agent), p.ID,
				archival.PassageUpdate{Text: &text})
			return err
		}, 11},
		{"tags are changed", func(f *denseFixture, p archival.Inserted) error {
			_, err := f.store.UpdatePassage(context.Background(), f.org, archival.Of(f.agent), p.ID,
				archival.PassageUpdate{Tags: []string{"new"}})
			return err
		}, 11},
		{"the archive is deleted", func(f *denseFixture, p archival.Inserted) error {
			return f.store.DeleteArchive(context.Background(), f.org, p.ArchiveID)
		}, 0},
		{"another model comes", func(f *denseFixture, _ archival.Inserted) error {
			f.connect(embedtest.New(f, 16))
			return nil
		}, 0},
		{"another server embeds it", func(f *denseFixture, p archival.Inserted) error {
			return archival.EmbedOnce(f.store, context.Background(), f.org, p.ArchiveID)
		}, 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := embedtest.New(t, 8)
			f := newDenseFixture(t, e)
			archive, p := f.notes(10), f.insert("the one")[0]
			var once sync.Once
			changes := embedtest.Fault(func(http.ResponseWriter, *http.Request, []string) bool {
				once.Do(func() {
					e.Fault.Store(nil)
					if err := c.change(f, p); err != nil {
						t.Error(err)
					}
				})
				return false
			})
			e.Fault.Store(&changes)
			if err := archival.EmbedOnce(f.store, t.Context(), f.org, archive); err != nil {
				t.Errorf("embed: %v", err)
			}
			if n := f.rows("passage_vectors"); n != c.left {
				t.Errorf("%d vectors are left, want %d", n, c.left)
			}
			if c.left > 0 {
				f.settled(0)
			}
			if f.count(`SELECT count(*) FROM passages WHERE org = $1 AND text = $2`, f.org, text) > 0 &&
				!slices.Contains(slices.Concat(e.Asked()...), text) {
				t.Error("the vector of a changed text is that of the old one")
			}
		})
	}
}
