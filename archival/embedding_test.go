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

// denseWorld is a world whose passages an endpoint embeds.
type denseWorld struct {
	*world
	endpoint *embedtest.Endpoint
	dense    *embed.Dense
	space    embed.Space
}

func newDenseWorld(t *testing.T, e *embedtest.Endpoint) *denseWorld {
	t.Helper()
	w := &denseWorld{world: newWorld(t)}
	w.connect(e)
	return w
}

// connect gives the world a store that uses an endpoint, as a server that is started does.
func (w *denseWorld) connect(e *embedtest.Endpoint) {
	w.Helper()
	w.endpoint, w.dense = e, e.DenseWithin(w, 2*time.Second)
	w.dense.FirstPause, w.dense.MaxPause = time.Millisecond, 20*time.Millisecond
	w.space = e.Use(w, w.pool, w.dense)
	w.store = archival.New(w.pool, archival.Options{Dense: w.dense})
	w.store.SetSettle(0)
	if _, err := w.store.Queue().Backfill(w.Context(), 0); err != nil {
		w.Fatal(err)
	}
}

// work does what a server does for the world's store, until stop is called or the test ends.
func (w *denseWorld) work() (stop func()) {
	w.Helper()
	return embedtest.Work(w, w.pool, w.store.Queue(), archival.Queues())
}

// count runs a query that counts.
func (w *world) count(sql string, args ...any) int {
	w.Helper()
	n, err := db.One[int](w.Context(), w.pool, sql, args...)
	if err != nil {
		w.Fatalf("%s: %v", sql, err)
	}
	return n
}

// settled waits until all passages have their vectors, but so many, in the space that is in use.
func (w *denseWorld) settled(without int) {
	w.Helper()
	embedtest.Eventually(w, "no passage waits", func() bool {
		return w.count(`SELECT count(*) FROM unembedded_passages WHERE refused IS NULL`) == 0 &&
			w.count(`SELECT count(*) FROM archives WHERE embedded_space IS DISTINCT FROM $1 AND deleted_at IS NULL`,
				w.space.ID) == 0
	})
	got, want := w.count(`SELECT count(*) FROM passage_vectors WHERE space_id = $1`, w.space.ID),
		w.count(`SELECT count(*) FROM passages`)-without
	if got != want {
		w.Errorf("%d vectors in space %d, want %d", got, w.space.ID, want)
	}
	if n := w.count(`SELECT count(*) FROM unembedded_passages`); n != without {
		w.Errorf("%d passages go without a vector, want %d", n, without)
	}
	if n := w.count(`
		SELECT count(*) FROM passage_vectors v JOIN passages p ON p.key = v.passage_key
		WHERE (v.org, v.archive_key, v.tags, v.happened_at) IS DISTINCT FROM (p.org, p.archive_key, p.tags, p.happened_at)`); n != 0 {
		w.Errorf("%d vectors tell something else of their passage", n)
	}
}

// notes inserts so many passages into the agent's archive, a call for each.
func (w *world) notes(n int) string {
	w.Helper()
	archive := ""
	for i := range n {
		archive = w.insert(fmt.Sprintf("note %d about topic %d, after %d others", i, i%7,
			w.count(`SELECT count(*) FROM passages`)))[0].ArchiveID
	}
	return archive
}

// status is how far an archive's vectors are.
func (w *world) status(archive string) *embed.Status {
	w.Helper()
	c, err := w.store.Archive(w.Context(), org, archive)
	if err != nil {
		w.Fatal(err)
	}
	return c.Vectors
}

func TestQueueOfPassages(t *testing.T) {
	t.Parallel()
	embedtest.TestQueue(t, func(t *testing.T) *embedtest.Memory {
		w, archive := &denseWorld{world: newWorld(t)}, ""
		return &embedtest.Memory{
			Pool: w.pool, Vectors: "passage_vectors",
			Connect: func(e *embedtest.Endpoint, settle time.Duration) { w.connect(e); w.store.SetSettle(settle) },
			Queue:   func() embedtest.Queue { return w.store.Queue() },
			Write:   func(calls int) { archive = w.notes(2 * calls) },
			Found: func() bool {
				last := fmt.Sprintf("after %d others", w.count(`SELECT count(*) FROM passages`)-1)
				got := w.found(archival.Query{Text: last})
				return len(got) > 0 && strings.Contains(got[0], last)
			},
			Status: func() *embed.Status { return w.status(archive) }, Settled: func() { w.settled(0) },
		}
	})
}

// What was inserted before there was an endpoint is embedded when there is one, in every archive.
func TestArchivesAreBackfilled(t *testing.T) {
	t.Parallel()
	w := &denseWorld{world: newWorld(t)}
	archive := w.notes(150)
	if got := w.status(archive); got != nil {
		t.Errorf("without an endpoint the archive's status is %+v", got)
	}
	for i := range 10 {
		if _, err := w.store.Insert(t.Context(), org, w.archive(fmt.Sprint("archive ", i)).ID, []archival.Draft{{Text: "one",
			Tags: []string{"x"}}, {Text: "two"}}); err != nil {
			t.Fatal(err)
		}
	}
	gone := w.archive("gone")
	if err := w.store.DeleteArchive(t.Context(), org, gone.ID); err != nil {
		t.Fatal(err)
	}
	w.connect(embedtest.New(t, 8))
	w.work()
	w.settled(0)
	w.store = archival.New(w.pool, archival.Options{}) // a server without an endpoint beside one that has it
	w.notes(3)
	w.settled(0)
}

// A passage that the endpoint refuses goes without a vector, is counted, and is tried again when its text is another;
// the others have theirs.
func TestARefusedPassageHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	e.Refuse = "forbidden"
	w := newDenseWorld(t, e)
	archive := w.notes(40)
	refused := w.insert("this is forbidden")[0]
	w.insert(strings.Repeat("allowed words ", 200) + "forbidden")
	stop := w.work()
	w.settled(1)
	if got := w.status(archive); got.Refused != 1 || got.Error == nil || !strings.Contains(*got.Error,
		"refuses some passages (") {
		t.Errorf("the archive's status is %+v", got)
	}
	if got := w.found(archival.Query{Text: "what is forbidden", Limit: 1}); len(got) != 1 || got[0] != refused.Text {
		t.Errorf("by its words: got %q", got)
	}
	text := "this is welcome"
	if _, err := w.store.UpdatePassage(t.Context(), org, w.agent, refused.ID,
		archival.PassageUpdate{Text: &text}); err != nil {
		t.Fatal(err)
	}
	w.settled(0)
	w.insert("another forbidden text")
	w.settled(1)
	stop()
	w.connect(embedtest.New(t, 16))
	stop = w.work()
	w.settled(0)
	stop()
	e.Refuse = ""
	asked := len(slices.Concat(e.Asked()...))
	w.connect(e)
	w.work()
	w.settled(0)
	if n := len(slices.Concat(e.Asked()...)) - asked; n != 1 {
		t.Errorf("going back to a model takes %d texts, want the one that was refused", n)
	}
}

// A changed text is never found by what the old one meant; changed tags and deleted passages are as they are by meaning
// too.
func TestVectorsFollowTheirPassages(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 64)
	w := newDenseWorld(t, e)
	p := w.insert("velo locked behind the library", "tea is hot", "snow is cold")
	archive := p[0].ArchiveID
	once := func() {
		t.Helper()
		if err := archival.EmbedOnce(w.store, t.Context(), org, archive); err != nil {
			t.Fatal(err)
		}
		w.settled(0)
	}
	once()
	text := "the car is at the workshop"
	if _, err := w.store.UpdatePassage(t.Context(), org, w.agent, p[0].ID,
		archival.PassageUpdate{Text: &text}); err != nil {
		t.Fatal(err)
	}
	if n := w.count(`SELECT count(*) FROM passage_vectors`); n != 2 {
		t.Errorf("%d vectors beside a changed text, want 2", n)
	}
	if _, err := w.store.UpdatePassage(t.Context(), org, w.agent, p[1].ID,
		archival.PassageUpdate{Tags: []string{"drink"}}); err != nil {
		t.Fatal(err)
	}
	if n := w.count(`SELECT count(*) FROM passage_vectors`); n != 2 {
		t.Errorf("%d vectors beside changed tags, want 2", n)
	}
	once()
	if err := w.store.DeletePassage(t.Context(), org, w.agent, p[2].ID); err != nil {
		t.Fatal(err)
	}
	w.settled(0)
	if err := w.store.DeleteArchive(t.Context(), org, archive); err != nil {
		t.Fatal(err)
	}
	for {
		if n, err := w.store.Clear(t.Context()); n == 0 || err != nil {
			break
		}
	}
	if n := w.count(`SELECT count(*) FROM passage_vectors`); n != 0 {
		t.Errorf("%d vectors are left of a deleted archive", n)
	}
}

// What is changed or deleted while the endpoint has it gets no vector of what it was.
func TestChangesWhileEmbedding(t *testing.T) {
	t.Parallel()
	text := "another text"
	for _, c := range []struct {
		name   string
		change func(w *denseWorld, p archival.Inserted) error
		left   int // vectors after all is done
	}{
		{"a passage is deleted", func(w *denseWorld, p archival.Inserted) error {
			return w.store.DeletePassage(context.Background(), org, w.agent, p.ID)
		}, 10},
		{"a text is changed", func(w *denseWorld, p archival.Inserted) error {
			_, err := w.store.UpdatePassage(context.Background(), org, w.agent, p.ID, archival.PassageUpdate{Text: &text})
			return err
		}, 11},
		{"tags are changed", func(w *denseWorld, p archival.Inserted) error {
			_, err := w.store.UpdatePassage(context.Background(), org, w.agent, p.ID,
				archival.PassageUpdate{Tags: []string{"new"}})
			return err
		}, 11},
		{"the archive is deleted", func(w *denseWorld, p archival.Inserted) error {
			return w.store.DeleteArchive(context.Background(), org, p.ArchiveID)
		}, 0},
		{"another model comes", func(w *denseWorld, _ archival.Inserted) error {
			w.connect(embedtest.New(w, 16))
			return nil
		}, 0},
		{"another server embeds it", func(w *denseWorld, p archival.Inserted) error {
			return archival.EmbedOnce(w.store, context.Background(), org, p.ArchiveID)
		}, 11},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := embedtest.New(t, 8)
			w := newDenseWorld(t, e)
			archive, p := w.notes(10), w.insert("the one")[0]
			var once sync.Once
			changes := embedtest.Fault(func(http.ResponseWriter, *http.Request, []string) bool {
				once.Do(func() {
					e.Fault.Store(nil)
					if err := c.change(w, p); err != nil {
						t.Error(err)
					}
				})
				return false
			})
			e.Fault.Store(&changes)
			if err := archival.EmbedOnce(w.store, t.Context(), org, archive); err != nil {
				t.Errorf("embed: %v", err)
			}
			if n := w.count(`SELECT count(*) FROM passage_vectors`); n != c.left {
				t.Errorf("%d vectors are left, want %d", n, c.left)
			}
			if c.left > 0 {
				w.settled(0)
			}
			if w.count(`SELECT count(*) FROM passages WHERE text = $1`, text) > 0 &&
				!slices.Contains(slices.Concat(e.Asked()...), text) {
				t.Error("the vector of a changed text is that of the old one")
			}
		})
	}
}
