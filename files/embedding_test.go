package files_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/files"
)

func TestChunksAreEmbedded(t *testing.T) {
	t.Parallel()
	for _, dimension := range []int{384, 1536} {
		t.Run(fmt.Sprint(dimension), func(t *testing.T) {
			t.Parallel()
			fx, _, _ := newDenseFixture(t, dimension)
			folder := fx.finelyCut("f")
			f := fx.upload(folder, "log.txt", manyLines(1500))
			if f.Status != files.Completed || f.TotalChunks <= endpoint.MostTexts || f.ChunksEmbedded != f.TotalChunks {
				t.Fatalf("got %+v, want more than one batch, all embedded", f)
			}
			wrong := fx.count(`
				SELECT count(*) FROM chunk_vectors
				WHERE org = $1 AND (vector_dims(embedding) <> $2 OR abs(l2_norm(embedding) - 1) > 0.01)`, fx.org, dimension)
			if n := fx.rows("chunk_vectors"); n != f.TotalChunks || wrong != 0 {
				t.Errorf("%d vectors for %d chunks, %d of them wrong", n, f.TotalChunks, wrong)
			}
			got, err := fx.Search(t.Context(), fx.org, files.Of(fx.agentWith(folder)),
				files.Query{Text: "this is line 1321", Limit: 3})
			if err != nil || got.Ranking != files.ByWordsAndMeaning || got.Hits[0].MeaningRank == 0 ||
				got.Hits[0].WordsRank == 0 {
				t.Errorf("search: got %+v (%v)", got, err)
			}
		})
	}
}

func TestFilesWaitForAnEndpointThatIsDown(t *testing.T) {
	t.Parallel()
	fx, e, _ := newDenseFixture(t, 8)
	folder := fx.folder("f")
	e.Down.Store(true)
	f := fx.send(folder, "a.txt", "words that can be found", files.Suffix)
	f = fx.awaitWhere(folder, f, func(f files.File) bool { return f.ErrorMessage != nil })
	if f.Status != files.Embedding || f.ChunksEmbedded != 0 || !strings.Contains(*f.ErrorMessage, "fails (status 503)") ||
		strings.Contains(*f.ErrorMessage, "repairs") { // the endpoint's own words are for the operator
		t.Errorf("got %+v, want it embedding, with the reason why it waits", f)
	}
	got, err := fx.Search(t.Context(), fx.org, files.Of(fx.agentWith(folder)), files.Query{Text: "words", Limit: 3})
	if err != nil || len(got.Hits) != 1 || got.Ranking != files.ByWords || got.Note == "" {
		t.Errorf("search by words meanwhile: got %+v (%v)", got, err)
	}
	e.Down.Store(false)
	if f = fx.await(folder, f); f.Status != files.Completed || f.ErrorMessage != nil || f.ChunksEmbedded != f.TotalChunks {
		t.Errorf("got %+v, want it completed once the endpoint is back", f)
	}
}

func TestARefusedChunkGoesWithoutVector(t *testing.T) {
	t.Parallel()
	fx, e, _ := newDenseFixture(t, 8)
	e.Refuse = "forbidden"
	folder := fx.folder("f")
	text := manyLines(600) + "\n\nforbidden\n\n" + manyLines(600)
	f := fx.upload(folder, "a.txt", text)
	vectors := fx.rows("chunk_vectors")
	if f.Status != files.Completed || vectors == 0 || vectors >= f.TotalChunks {
		t.Errorf("got %+v with %d vectors, want all but the refused", f, vectors)
	}
	got, err := fx.Search(t.Context(), fx.org, files.Of(fx.agentWith(folder)), files.Query{Text: "forbidden", Limit: 3})
	if err != nil || len(got.Hits) == 0 || !strings.Contains(got.Hits[0].Text, "forbidden") {
		t.Errorf("the refused chunk is not found by its words: %+v (%v)", got, err)
	}
}

func TestANewSpaceIsFilledBesideTheOld(t *testing.T) {
	t.Parallel()
	fx, _, old := newDenseFixture(t, 8)
	folder := fx.folder("f")
	f := fx.upload(folder, "a.txt", manyLines(2000))
	other := embedtest.New(t, 16)
	endpoint := other.Endpoint(t)
	store, space := fx.newStore(fx.pool, files.Options{Endpoint: endpoint}), fx.space(other, "fake")
	endpoint.Use(space)
	for range 2 { // the second time queues nothing
		if _, err := files.BackfillOrg(store, t.Context(), fx.org); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := store.File(t.Context(), fx.org, folder.ID, f.ID, false); err != nil || got.Status != files.Embedding ||
		got.ChunksEmbedded != 0 {
		t.Errorf("in the new space the file is %+v (%v)", got, err)
	}
	if n, want := fx.rows("embed_batches", fmt.Sprint("space_id = ", space.ID)), (f.TotalChunks+31)/32; n != want {
		t.Errorf("%d batches are queued, want %d", n, want)
	}
	if n := fx.rows("chunk_vectors", fmt.Sprint("space_id = ", old.ID)); n != f.TotalChunks {
		t.Errorf("the old space has %d vectors, want %d", n, f.TotalChunks)
	}
}

// The space is unknown until the endpoint has answered once. Until then files wait and show it, and a search says that
// it lacks meaning. Then Backfill queues the files of all organizations: the test has its own database.
func TestFilesWaitForTheFirstAnswer(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	endpoint := e.Endpoint(t)
	fx := newFixtureIn(t, dbtest.New(t), files.Options{Endpoint: endpoint})
	fx.work(files.Queues())
	other := *fx
	other.org = dbtest.NewOrg(t, fx.pool)
	var waiting []func() files.File
	for _, fx := range []*fixture{fx, &other} {
		folder := fx.folder("f")
		f := fx.send(folder, "a.txt", "words that can be found", files.Suffix)
		f = fx.awaitWhere(folder, f, func(f files.File) bool { return f.TotalChunks > 0 })
		if f.Status != files.Embedding || f.ChunksEmbedded != 0 || f.ErrorMessage == nil {
			t.Errorf("got %+v, want it embedding, with the reason why it waits", f)
		}
		got, err := fx.Search(t.Context(), fx.org, files.Of(fx.agentWith(folder)), files.Query{Text: "words", Limit: 3})
		if err != nil || len(got.Hits) != 1 || got.Ranking != files.ByWords ||
			!strings.Contains(got.Note, "has given no vectors yet") {
			t.Errorf("search: got %+v (%v)", got, err)
		}
		waiting = append(waiting, func() files.File { return fx.await(folder, f) })
	}
	if n, err := fx.Backfill(t.Context()); n != 0 || err != nil {
		t.Errorf("backfill without a space: %d (%v)", n, err)
	}
	endpoint.Use(fx.space(e, "fake"))
	if n, err := fx.Backfill(t.Context()); n != 2 || err != nil {
		t.Fatalf("backfill: %d (%v), want a batch of each organization", n, err)
	}
	for _, await := range waiting {
		if f := await(); f.Status != files.Completed || f.ChunksEmbedded != 1 {
			t.Errorf("got %+v, want it completed", f)
		}
	}
}

// While the endpoint fails, all jobs share one pause, so a backlog does not flood it.
func TestABacklogIsNoStorm(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	endpoint := e.Endpoint(t)
	endpoint.FirstPause, endpoint.MaxPause = 10*time.Millisecond, 200*time.Millisecond
	fx, _ := newDenseFixtureWith(t, e, endpoint, files.Queues())
	e.Down.Store(true)
	folder, began := fx.folder("f"), time.Now()
	var sent []files.File
	for i := range 20 {
		sent = append(sent, fx.send(folder, fmt.Sprintf("%d.txt", i), manyLines(20), files.Suffix))
	}
	fx.eventually("every batch waits, and the endpoint was asked again", func() bool {
		return fx.rows("embed_batches") == 20 && e.Requests.Load() > 4
	})
	// Five requests in the first 310 ms, then one per pause. Four jobs may have been running when the pause began.
	if n, most := e.Requests.Load(), 10+int64(time.Since(began)/endpoint.MaxPause); n > most {
		t.Errorf("20 waiting batches made %d requests where %d are the most", n, most)
	}
	e.Down.Store(false)
	for _, f := range sent {
		if f = fx.await(folder, f); f.Status != files.Completed {
			t.Errorf("got %+v", f)
		}
	}
}
