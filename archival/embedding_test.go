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

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/embedtest"
)

// denseFixture is a fixture whose passages an endpoint embeds.
type denseFixture struct {
	*fixture
	server   *embedtest.Endpoint
	endpoint *embed.Endpoint
	space    embed.Space
}

func newDenseFixture(t *testing.T, e *embedtest.Endpoint) *denseFixture {
	t.Helper()
	f := &denseFixture{fixture: newFixture(t)}
	f.connect(e)
	return f
}

// connect gives the fixture a store that uses an endpoint, as a server that is started does.
func (f *denseFixture) connect(e *embedtest.Endpoint) {
	f.Helper()
	f.server, f.endpoint = e, e.Endpoint(f)
	f.endpoint.FirstPause, f.endpoint.MaxPause = time.Millisecond, 20*time.Millisecond
	f.space = e.Use(f, f.pool, f.endpoint)
	f.store = archival.New(f.pool, archival.Options{Endpoint: f.endpoint})
	f.store.SetSettle(0)
	if _, err := f.store.Queue().Backfill(f.Context(), 0); err != nil {
		f.Fatal(err)
	}
}

// work does what a server does for the fixture's store, until stop is called or the test ends.
func (f *denseFixture) work() (stop func()) {
	f.Helper()
	return embedtest.Work(f, f.pool, f.store.Queue(), f.store.Queue().Queues())
}

// count runs a query that counts.
func (f *fixture) count(sql string, args ...any) int {
	f.Helper()
	n, err := db.One[int](f.Context(), f.pool, sql, args...)
	if err != nil {
		f.Fatalf("%s: %v", sql, err)
	}
	return n
}

// settled waits until all passages but a given number have their vectors, in the space that is in use.
func (f *denseFixture) settled(without int) {
	f.Helper()
	embedtest.Eventually(f, "no passage waits", func() bool {
		return f.count(`SELECT count(*) FROM unembedded_passages WHERE refused IS NULL`) == 0 &&
			f.count(`SELECT count(*) FROM archives WHERE embedded_space IS DISTINCT FROM $1 AND deleted_at IS NULL`,
				f.space.ID) == 0
	})
	got, want := f.count(`SELECT count(*) FROM passage_vectors WHERE space_id = $1`, f.space.ID),
		f.count(`SELECT count(*) FROM passages`)-without
	if got != want {
		f.Errorf("%d vectors in space %d, want %d", got, f.space.ID, want)
	}
	if n := f.count(`SELECT count(*) FROM unembedded_passages`); n != without {
		f.Errorf("%d passages go without a vector, want %d", n, without)
	}
	if n := f.count(`
		SELECT count(*) FROM passage_vectors v JOIN passages p ON p.key = v.passage_key
		WHERE (v.org, v.archive_key, v.tags, v.happened_at, v.valid_from, v.valid_until)
		      IS DISTINCT FROM (p.org, p.archive_key, p.tags, p.happened_at, p.valid_from, p.valid_until)`); n != 0 {
		f.Errorf("%d vectors tell something else of their passage", n)
	}
}

// notes inserts a given number of passages into the agent's archive, a call for each.
func (f *fixture) notes(n int) string {
	f.Helper()
	archive := ""
	for i := range n {
		archive = f.insert(fmt.Sprintf("note %d about topic %d, after %d others", i, i%7,
			f.count(`SELECT count(*) FROM passages`)))[0].ArchiveID
	}
	return archive
}

// status is how far an archive's vectors are.
func (f *fixture) status(archive string) *embed.Status {
	f.Helper()
	c, err := f.store.Archive(f.Context(), org, archive)
	if err != nil {
		f.Fatal(err)
	}
	return c.Vectors
}

func TestQueueOfPassages(t *testing.T) {
	t.Parallel()
	embedtest.TestQueue(t, func(t *testing.T) *embedtest.Memory {
		f, archive := &denseFixture{fixture: newFixture(t)}, ""
		return &embedtest.Memory{
			Pool: f.pool, Vectors: "passage_vectors",
			Connect: func(e *embedtest.Endpoint, settle time.Duration) { f.connect(e); f.store.SetSettle(settle) },
			Queue:   func() embedtest.Queue { return f.store.Queue() },
			Write:   func(calls int) { archive = f.notes(2 * calls) },
			Found: func() bool {
				last := fmt.Sprintf("after %d others", f.count(`SELECT count(*) FROM passages`)-1)
				got := f.found(archival.Query{Text: last})
				return len(got) > 0 && strings.Contains(got[0], last)
			},
			Status: func() *embed.Status { return f.status(archive) }, Settled: func() { f.settled(0) },
		}
	})
}

// What was inserted before there was an endpoint is embedded when there is one, in every archive.
func TestArchivesAreBackfilled(t *testing.T) {
	t.Parallel()
	f := &denseFixture{fixture: newFixture(t)}
	archive := f.notes(150)
	if got := f.status(archive); got != nil {
		t.Errorf("without an endpoint the archive's status is %+v", got)
	}
	for i := range 10 {
		if _, err := f.store.Insert(t.Context(), org, f.archive(fmt.Sprint("archive ", i)).ID, []archival.Draft{{Text: "one",
			Tags: []string{"x"}}, {Text: "two"}}); err != nil {
			t.Fatal(err)
		}
	}
	gone := f.archive("gone")
	if err := f.store.DeleteArchive(t.Context(), org, gone.ID); err != nil {
		t.Fatal(err)
	}
	f.connect(embedtest.New(t, 8))
	f.work()
	f.settled(0)
	f.store = archival.New(f.pool, archival.Options{}) // a server without an endpoint next to one that has it
	f.notes(3)
	f.settled(0)
}

// A passage that the endpoint refuses goes without a vector, is counted, and is tried again when its text is another;
// the others have theirs.
func TestARefusedPassageHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	e.Refuse = "forbidden"
	f := newDenseFixture(t, e)
	archive := f.notes(40)
	refused := f.insert("this is forbidden")[0]
	f.insert(strings.Repeat("allowed words ", 200) + "forbidden")
	stop := f.work()
	f.settled(1)
	if got := f.status(archive); got.Refused != 1 || got.Error == nil || !strings.Contains(*got.Error,
		"refuses some passages (") {
		t.Errorf("the archive's status is %+v", got)
	}
	if got := f.found(archival.Query{Text: "what is forbidden", Limit: 1}); len(got) != 1 || got[0] != refused.Text {
		t.Errorf("by its words: got %q", got)
	}
	text := "this is welcome"
	if _, err := f.store.UpdatePassage(t.Context(), org, f.agent, refused.ID,
		archival.PassageUpdate{Text: &text}); err != nil {
		t.Fatal(err)
	}
	f.settled(0)
	f.insert("another forbidden text")
	f.settled(1)
	stop()
	f.connect(embedtest.New(t, 16))
	stop = f.work()
	f.settled(0)
	stop()
	e.Refuse = ""
	asked := len(slices.Concat(e.Asked()...))
	f.connect(e)
	f.work()
	f.settled(0)
	if n := len(slices.Concat(e.Asked()...)) - asked; n != 1 {
		t.Errorf("going back to a model takes %d texts, want the one that was refused", n)
	}
}

// A changed text is never found by what the old one meant; changed tags and deleted passages are as they are by meaning
// too.
func TestVectorsFollowTheirPassages(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 64)
	f := newDenseFixture(t, e)
	p := f.insert("velo locked behind the library", "tea is hot", "snow is cold")
	archive := p[0].ArchiveID
	once := func() {
		t.Helper()
		if err := archival.EmbedOnce(f.store, t.Context(), org, archive); err != nil {
			t.Fatal(err)
		}
		f.settled(0)
	}
	once()
	text := "the car is at the workshop"
	if _, err := f.store.UpdatePassage(t.Context(), org, f.agent, p[0].ID,
		archival.PassageUpdate{Text: &text}); err != nil {
		t.Fatal(err)
	}
	if n := f.count(`SELECT count(*) FROM passage_vectors`); n != 2 {
		t.Errorf("%d vectors beside a changed text, want 2", n)
	}
	if _, err := f.store.UpdatePassage(t.Context(), org, f.agent, p[1].ID,
		archival.PassageUpdate{Tags: []string{"drink"}}); err != nil {
		t.Fatal(err)
	}
	if n := f.count(`SELECT count(*) FROM passage_vectors`); n != 2 {
		t.Errorf("%d vectors beside changed tags, want 2", n)
	}
	once()
	if err := f.store.DeletePassage(t.Context(), org, f.agent, p[2].ID); err != nil {
		t.Fatal(err)
	}
	f.settled(0)
	if err := f.store.DeleteArchive(t.Context(), org, archive); err != nil {
		t.Fatal(err)
	}
	for {
		if n, err := f.store.Clear(t.Context()); n == 0 || err != nil {
			break
		}
	}
	if n := f.count(`SELECT count(*) FROM passage_vectors`); n != 0 {
		t.Errorf("%d vectors are left of a deleted archive", n)
	}
}

// What is changed or deleted while the endpoint has it gets no vector of what it was.
func TestChangesWhileEmbedding(t *testing.T) {
	t.Parallel()
	text := "another text"
	for _, c := range []struct {
		name   string
		change func(f *denseFixture, p archival.Inserted) error
		left   int // vectors after all is done
	}{
		{"a passage is deleted", func(f *denseFixture, p archival.Inserted) error {
			return f.store.DeletePassage(context.Background(), org, f.agent, p.ID)
		}, 10},
		{"a text is changed", func(f *denseFixture, p archival.Inserted) error {
			_, err := f.store.UpdatePassage(context.Background(), org, f.agent, p.ID, archival.PassageUpdate{Text: &text})
			return err
		}, 11},
		{"tags are changed", func(f *denseFixture, p archival.Inserted) error {
			_, err := f.store.UpdatePassage(context.Background(), org, f.agent, p.ID,
				archival.PassageUpdate{Tags: []string{"new"}})
			return err
		}, 11},
		{"the archive is deleted", func(f *denseFixture, p archival.Inserted) error {
			return f.store.DeleteArchive(context.Background(), org, p.ArchiveID)
		}, 0},
		{"another model comes", func(f *denseFixture, _ archival.Inserted) error {
			f.connect(embedtest.New(f, 16))
			return nil
		}, 0},
		{"another server embeds it", func(f *denseFixture, p archival.Inserted) error {
			return archival.EmbedOnce(f.store, context.Background(), org, p.ArchiveID)
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
			if err := archival.EmbedOnce(f.store, t.Context(), org, archive); err != nil {
				t.Errorf("embed: %v", err)
			}
			if n := f.count(`SELECT count(*) FROM passage_vectors`); n != c.left {
				t.Errorf("%d vectors are left, want %d", n, c.left)
			}
			if c.left > 0 {
				f.settled(0)
			}
			if f.count(`SELECT count(*) FROM passages WHERE text = $1`, text) > 0 &&
				!slices.Contains(slices.Concat(e.Asked()...), text) {
				t.Error("the vector of a changed text is that of the old one")
			}
		})
	}
}
