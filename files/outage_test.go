package files_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/files"
)

// However the endpoint fails, files wait and show the reason. They ask it only now and then, and go on when it works
// again.
func TestFilesOutliveEveryFailureOfTheEndpoint(t *testing.T) {
	t.Parallel()
	hang := func(_ http.ResponseWriter, r *http.Request, _ []string) bool { <-r.Context().Done(); return true }
	cut := func(res http.ResponseWriter, _ *http.Request, _ []string) bool {
		res.Header().Set("Content-Length", "1000")
		_, _ = res.Write([]byte(`{"data": [`))
		return true
	}
	for _, c := range []struct {
		name   string
		fault  embedtest.Fault
		reason string
	}{
		{"it is down", embedtest.Answer(503, `{"error": {"message": "down for repairs"}}`), "fails (status 503)"},
		{"it is slow", hang, "does not answer within"},
		{"it takes no more", embedtest.Answer(429, `{"error": {"message": "too many"}}`, "Retry-After-Ms", "60"),
			"takes no more requests for now"},
		{"it fails", embedtest.Answer(500, `oh`), "status 500"},
		{"it answers garbage", embedtest.Answer(200, `<html>`), "something else than embeddings"},
		{"its answers break off", cut, "cannot be reached"},
		{"its dimension is another", embedtest.Vectors(5, 0), "a vector of 5 numbers after ones of 8"},
		{"it leaves texts out", embedtest.Vectors(8, 1), "vectors to"},
		{"its key is refused", embedtest.Answer(401, `{}`), "does not accept the server's key (status 401)"},
		{"its vectors have no direction", embedtest.Zeros(8), "a vector of zeros"},
		{"it refuses everything", embedtest.Answer(400, `{"error": {"message": "no such model"}}`), "refuses every text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := embedtest.New(t, 8)
			endpoint := e.EndpointWithin(t, 200*time.Millisecond)
			const first = 20 * time.Millisecond
			endpoint.FirstPause, endpoint.MaxPause = first, 5*first
			fx, _ := newDenseFixtureWith(t, e, endpoint, files.Queues())
			folder := fx.folder("f")
			fx.upload(folder, "before.txt", "while it works\n")
			e.Fault.Store(&c.fault)
			before, began := e.Requests.Load(), time.Now()
			var sent []files.File
			for i := range 3 {
				sent = append(sent, fx.send(folder, fmt.Sprintf("%d.txt", i), manyLines(150), files.Suffix))
			}
			fx.eventually("a file says "+c.reason+", and the endpoint is asked again", func() bool {
				return e.Requests.Load()-before > 4 && fx.rows("files", "generation = 0") == 0 &&
					slices.ContainsFunc(sent, func(f files.File) bool {
						f, err := fx.File(t.Context(), fx.org, folder.ID, f.ID, false)
						return err == nil && f.ErrorMessage != nil && strings.Contains(*f.ErrorMessage, c.reason)
					})
			})
			// When the pause begins, at most four jobs run; then one runs per pause. Each makes at most two requests, or eight
			// if a batch is refused and its halves are tried.
			each := int64(2)
			if c.reason == "refuses every text" {
				each = 8
			}
			if n, most := e.Requests.Load()-before, each*int64(5+time.Since(began)/first); n > most {
				t.Errorf("%d requests were made where %d are the most", n, most)
			}
			for _, f := range sent {
				if f, err := fx.File(t.Context(), fx.org, folder.ID, f.ID, false); err != nil || f.Status != files.Embedding {
					t.Errorf("meanwhile: got %+v (%v)", f, err)
				}
			}
			e.Fault.Store(nil)
			for _, f := range sent {
				if f = fx.await(folder, f); f.Status != files.Completed || f.ErrorMessage != nil ||
					f.ChunksEmbedded != f.TotalChunks {
					t.Errorf("afterwards: got %+v", f)
				}
			}
			if n, chunks := fx.rows("chunk_vectors"), fx.rows("chunks"); n != chunks {
				t.Errorf("%d vectors for %d chunks", n, chunks)
			}
		})
	}
}

// An endpoint that can do only a few chunks in time gets no more at once.
func TestBatchesShrinkToWhatTheEndpointHasTimeFor(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	endpoint := e.EndpointWithin(t, 200*time.Millisecond)
	endpoint.FirstPause, endpoint.MaxPause = time.Millisecond, time.Millisecond
	fx, _ := newDenseFixtureWith(t, e, endpoint, files.Queues())
	slow := embedtest.Fault(func(_ http.ResponseWriter, r *http.Request, texts []string) bool {
		if len(texts) <= 3 {
			return false
		}
		<-r.Context().Done()
		return true
	})
	e.Fault.Store(&slow)
	f := fx.upload(fx.finelyCut("f"), "a.txt", manyLines(600))
	if n := fx.rows("chunk_vectors"); f.Status != files.Completed || n != f.TotalChunks || n < 40 {
		t.Errorf("got %+v with %d vectors", f, n)
	}
}

// Two servers may work on one batch, if one lost its lock. If the other shortened the batch meanwhile, no vector is
// stored twice.
func TestABatchThatWasShortenedMeanwhileIsNotStored(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	fx, _ := newDenseFixtureWith(t, e, e.Endpoint(t), oneEach)
	shorten := embedtest.Fault(func(_ http.ResponseWriter, _ *http.Request, _ []string) bool {
		e.Fault.Store(nil)
		_, err := fx.pool.Exec(context.Background(), `
			WITH short AS (UPDATE embed_batches SET end_ordinal = 1 WHERE org = $1 AND first_ordinal = 0 RETURNING *)
			INSERT INTO embed_batches (file_key, space_id, generation, first_ordinal, end_ordinal, org, folder_key)
			SELECT s.file_key, s.space_id, s.generation, 1, f.chunks, s.org, s.folder_key
			FROM short s JOIN files f ON f.key = s.file_key`, fx.org)
		if err != nil {
			t.Error(err)
		}
		return false
	})
	e.Fault.Store(&shorten)
	folder := fx.folder("f")
	f := fx.send(folder, "a.txt", manyLines(300), files.Suffix)
	fx.eventually("the job ends", func() bool { return fx.jobsWhere("kind = 'embed_chunks' AND state = 'completed'") > 0 })
	if n := fx.rows("chunk_vectors"); n > 0 {
		t.Errorf("%d vectors of a batch are there that another has parted", n)
	}
	fx.backfill()
	if f = fx.await(folder, f); f.Status != files.Completed ||
		fx.rows("chunk_vectors") != f.TotalChunks || f.TotalChunks < 2 {
		t.Errorf("got %+v", f)
	}
}

// The pause is as long as the endpoint asks.
func TestThePauseIsAsLongAsTheEndpointAsks(t *testing.T) {
	t.Parallel()
	e := embedtest.New(t, 8)
	endpoint := e.Endpoint(t)
	endpoint.FirstPause, endpoint.MaxPause = time.Millisecond, time.Millisecond
	fx, _ := newDenseFixtureWith(t, e, endpoint, oneEach)
	busy := embedtest.Answer(429, `{}`, "Retry-After", "120")
	e.Fault.Store(&busy)
	folder := fx.folder("f")
	f := fx.send(folder, "a.txt", "text\n", files.Suffix)
	fx.awaitWhere(folder, f, func(f files.File) bool { return f.ErrorMessage != nil })
	for i := range 5 {
		fx.send(folder, fmt.Sprintf("%d.txt", i), "text\n", files.Suffix)
	}
	fx.eventually("the others wait too", func() bool { return fx.rows("embed_batches") == 6 })
	if n := e.Requests.Load(); n != 1 {
		t.Errorf("%d requests were made, want 1", n)
	}
	endpoint.Stop() // the job that waits for it goes back to its queue
}

func TestRefusedPassagesAreCounted(t *testing.T) {
	t.Parallel()
	fx, e, _ := newDenseFixture(t, 8)
	e.Refuse = "forbidden"
	folder := fx.folder("f")
	f := fx.upload(folder, "a.txt", manyLines(600)+"\n\nforbidden\n\n"+manyLines(600))
	n := fx.rows("chunks", "strpos(text, 'forbidden') > 0") // an overlap may have it too
	want := fmt.Sprintf("%d of %d passages get no vector "+
		"(status 400); they are found by their words",
		n, f.TotalChunks)
	if f.ErrorMessage == nil || *f.ErrorMessage != want || f.ChunksEmbedded != f.TotalChunks-n {
		t.Errorf("got %+v, want %q", f, want)
	}
	all := fx.upload(folder, "b.txt", "all is forbidden\n")
	asked := e.Requests.Load()
	if n := fx.backfill(); n != 0 {
		t.Errorf("%+v is embedded again: %d batches", all, n)
	}
	fx.idle()
	if n := e.Requests.Load(); n != asked {
		t.Errorf("what was refused is asked for again")
	}
}
