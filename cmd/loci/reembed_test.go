package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/embedtest"
)

// twoModels is two servers on a database, whose texts have vectors of an old model, and are to have those of a new one.
type twoModels struct {
	*program
	pool     *pgxpool.Pool
	servers  []*serverProcess
	old, new *embedtest.Endpoint
	agent    string
	passes   atomic.Int64 // requests for texts that the new model answers before it hangs
	release  chan struct{}
}

// fillers is how many passages are stored beside the texts that are searched: some slices of a reembedding. These are
// one of each kind of memory.
const (
	fillers  = 700
	searched = 4
)

func newTwoModels(t *testing.T, answered int64) *twoModels {
	t.Helper()
	m := &twoModels{old: embedtest.New(t, 384), new: embedtest.New(t, 1536), release: make(chan struct{})}
	m.passes.Store(answered)
	for _, e := range []*embedtest.Endpoint{m.old, m.new} {
		e.Same = map[string]string{"feline": "cat"} // which no word of the texts says
	}
	hangs := embedtest.Fault(func(_ http.ResponseWriter, r *http.Request, texts []string) bool {
		if len(texts) > 3 && m.passes.Add(-1) < 0 { // not the probes, and not a search
			select {
			case <-m.release:
			case <-r.Context().Done():
				return true
			}
		}
		return false
	})
	m.new.Fault.Store(&hangs)
	address := dbtest.OwnerURL(t)
	m.servers = launchTwo(t, "--database-url="+address, "--embedding-base-url="+m.old.URL+"/v1", "--embedding-model=old",
		"--embedding-next-base-url="+m.new.URL+"/v1", "--embedding-next-model=new")
	var err error
	if m.pool, err = db.Connect(t.Context(), address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.pool.Close)
	m.program = &program{t: t, base: m.servers[0].url()}
	m.fill()
	return m
}

// fill stores texts in all memories and waits for their vectors.
func (m *twoModels) fill() {
	m.t.Helper()
	m.agent = call[identified](m.program, "POST", "/v1/agents", map[string]any{"name": "a"}).ID
	folder := call[identified](m.program, "POST", "/v1/folders/", map[string]any{"name": "f"}).ID
	call[any](m.program, "PATCH", "/v1/agents/"+m.agent+"/folders/attach/"+folder, nil)
	call[stored](m.program, "POST", "/v1/folders/"+folder+"/upload", fileForm(m.t, "pets.txt", []byte("The cat sleeps.")))
	call[any](m.program, "POST", "/v1/agents/"+m.agent+"/messages/capture", map[string]any{
		"messages": []map[string]any{{"role": "user", "content": "My cat sleeps"}}})
	call[any](m.program, "POST", "/v1/agents/"+m.agent+"/archival-memory", map[string]any{"text": "A cat sleeps"})
	tree := call[identified](m.program, "POST", "/v1/memory-trees", map[string]any{"name": "t"}).ID
	call[any](m.program, "PATCH", "/v1/agents/"+m.agent+"/memory-trees/attach/"+tree, nil)
	call[any](m.program, "PUT", "/v1/memory-trees/"+tree+"/file", map[string]any{"path": "/memories/pets.md",
		"content": "The cat sleeps"})
	archive := call[[]identified](m.program, "GET", "/v1/archives?agent_id="+m.agent, nil)[0].ID
	texts := make([]map[string]any, fillers)
	for i := range texts {
		texts[i] = map[string]any{"text": fmt.Sprintf("Ledger entry %d", i)}
	}
	call[any](m.program, "POST", "/v1/archives/"+archive+"/passages/batch", map[string]any{"passages": texts})
	embedtest.Eventually(m.t, "all texts have a vector of the old model",
		func() bool { return m.vectors(384) == fillers+searched })
}

// vectors counts the vectors of a dimension.
func (m *twoModels) vectors(dimension int) (n int) {
	m.t.Helper()
	if err := m.pool.QueryRow(m.t.Context(), `
		SELECT count(*) FROM (
			SELECT space_id FROM chunk_vectors UNION ALL SELECT space_id FROM message_vectors
			UNION ALL SELECT space_id FROM passage_vectors UNION ALL SELECT space_id FROM memory_file_vectors
		) v JOIN embedding_spaces s ON s.id = v.space_id WHERE s.dimension = $1`, dimension).Scan(&n); err != nil {
		m.t.Fatal(err)
	}
	return n
}

// finds fails unless both servers find a file, a message, a passage and a memory file by their meaning alone.
func (m *twoModels) finds(when string) {
	m.t.Helper()
	for _, server := range m.servers {
		at := &program{t: m.t, base: server.url()}
		_, answer := at.send("GET", "/v1/agents/"+m.agent+"/memory-search?query=feline", nil)
		var found struct{ Hits []struct{ Kind string } }
		if err := json.Unmarshal(answer, &found); err != nil {
			m.t.Fatal(err)
		}
		kinds := map[string]bool{}
		for _, h := range found.Hits {
			kinds[h.Kind] = true
		}
		if !kinds["file"] || !kinds["message"] || !kinds["passage"] || !kinds["memory_file"] {
			m.t.Fatalf("%s, a search by meaning answers %s", when, answer)
		}
	}
}

func (m *twoModels) progress() embed.ReembedProgress {
	m.t.Helper()
	return call[embed.ReembedProgress](m.program, "GET", "/v1/admin/reembedding", nil)
}

// While the vectors of a new model of 1,536 numbers are made beside those of 384, each search answers by meaning, also
// while a server is killed that makes them. The work goes on, searches switch when it is done, and servers that start
// later rank by the new model.
func TestReembeddingSwitchesWhileSearchesAnswer(t *testing.T) {
	t.Parallel()
	m := newTwoModels(t, 2)
	m.finds("before")
	got := call[embed.ReembedProgress](m.program, "POST", "/v1/admin/reembedding", nil)
	if got.State != embed.Reembedding ||
		got.FromDim != 384 || got.ToDim != 1536 {
		t.Fatalf("it starts as %+v", got)
	}
	embedtest.Eventually(t, "some vectors are made", func() bool { return m.vectors(1536) > 0 && m.passes.Load() < 0 })
	m.finds("while vectors are made")
	if got := m.progress(); got.State != embed.Reembedding || got.Done == 0 || got.Done >= fillers ||
		*got.Total != fillers+searched {
		t.Errorf("half way: %+v", got)
	}
	made := m.vectors(1536)
	for _, server := range m.servers {
		server.kill()
		server.start()
	}
	m.base = m.servers[0].url()
	m.finds("after the servers were killed")
	if again := m.vectors(1536); again != made {
		t.Errorf("%d vectors are left of %d", again, made)
	}
	call[any](m.program, "POST", "/v1/agents/"+m.agent+"/archival-memory", map[string]any{"text": "A late entry"})
	close(m.release)
	embedtest.Eventually(t, "all is switched", func() bool {
		m.finds("until the switch")
		return m.progress().State == embed.Switched
	})
	embedtest.Eventually(t, "the late text has a vector, too",
		func() bool { return m.vectors(1536) == fillers+searched+1 })
	embedtest.Eventually(t, "no server asks the old model", func() bool {
		asked := m.old.Requests.Load()
		m.finds("after the switch")
		return m.old.Requests.Load() == asked
	})
	for _, server := range m.servers {
		server.kill()
		server.start()
	}
	m.base = m.servers[0].url()
	asked := m.new.Requests.Load()
	embedtest.Eventually(t, "the next start ranks by the new model", func() bool {
		m.finds("after the next start")
		return m.new.Requests.Load() > asked
	})
	if got := m.progress(); got.State != embed.Switched || m.vectors(384) < fillers+searched {
		t.Errorf("after the next start: %+v, with %d old vectors", got, m.vectors(384))
	}
	if t.Failed() {
		t.Logf("first server:\n%s\nsecond server:\n%s", m.servers[0].log, m.servers[1].log)
	}
}

// A cancellation leaves the old vectors and searches as they were; what was made serves the next start.
func TestReembeddingIsCancelled(t *testing.T) {
	t.Parallel()
	m := newTwoModels(t, 1)
	loci := func(want string, args ...string) {
		t.Helper()
		out := newLines()
		code := run(t.Context(), append(append([]string{"reembed"}, args...), "--addr="+m.base), out, out)
		if (code == 0) != !strings.Contains(want, "nothing to cancel") || !strings.Contains(out.String(), want) {
			t.Fatalf("reembed %v: got %d %s, want %s", args, code, out, want)
		}
	}
	loci("No vectors of another model")
	loci("running", "start", "--detach")
	embedtest.Eventually(t, "some vectors are made", func() bool { return m.vectors(1536) > 0 && m.passes.Load() < 0 })
	loci("cancelled", "cancel")
	loci("nothing to cancel", "cancel")
	m.finds("after the cancellation")
	close(m.release)
	embedtest.Eventually(t, "the slices in hand end", func() bool { return m.progress().State == embed.Cancelled })
	if m.vectors(384) != fillers+searched || m.vectors(1536) >= fillers {
		t.Errorf("%d old vectors and %d new ones", m.vectors(384), m.vectors(1536))
	}
	m.finds("after the slices ended")
	loci("Searches rank by new, with 1536 numbers", "start")
	m.finds("after the second start")
	if m.vectors(1536) != fillers+searched {
		t.Errorf("%d new vectors", m.vectors(1536))
	}
}
