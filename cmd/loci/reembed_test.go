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
	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed/embedtest"
	"github.com/loci-memory/loci/embed/endpoint"
)

// twoModels is two servers on a database. Its texts have vectors of an old model, and get vectors of a new one.
type twoModels struct {
	*program
	url       string // the database's URL
	pool      *pgxpool.Pool
	processes []*serverProcess // the servers of a test that kills servers
	programs  []*program       // the servers of other tests
	old, new  *embedtest.Endpoint
	third     *embedtest.Endpoint // model of a test that switches twice
	agent     string
	passes    atomic.Int64 // how many requests the new model answers before it hangs or fails
	failing   atomic.Bool
	release   chan struct{}
}

// fillers is the number of passages that fill several slices of a reembedding. searched is the number of texts that are
// searched, one in each kind of memory.
const (
	fillers  = 700
	searched = 4
)

// newTwoModels starts the servers, with models of two dimensions. If the test kills servers, they run in their own
// processes.
func newTwoModels(t *testing.T, oldDimension, newDimension int, killed bool) *twoModels {
	t.Helper()
	m := &twoModels{url: dbtest.OwnerURL(t), old: meaning(t, oldDimension), new: meaning(t, newDimension)}
	m.passes.Store(2)
	m.interrupt(m.new)
	args := m.settings(m.old, m.new)
	if killed {
		m.processes = launchTwo(t, args...)
		m.program = &program{t: t, base: m.processes[0].url()}
	} else {
		m.serve(t, args)
	}
	var err error
	if m.pool, err = db.Connect(t.Context(), m.url); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.pool.Close)
	m.fill()
	return m
}

// meaning returns an endpoint for which a feline is a cat. No word in the texts says so.
func meaning(t *testing.T, dimension int) *embedtest.Endpoint {
	t.Helper()
	e := embedtest.New(t, dimension)
	e.Same = map[string]string{"feline": "cat"}
	return e
}

// interrupt lets a model answer some requests, and then fail, or hang until m.release is closed. Probes and searches
// are always answered.
func (m *twoModels) interrupt(model *embedtest.Endpoint) {
	release := make(chan struct{})
	m.release = release
	fault := embedtest.Fault(func(w http.ResponseWriter, r *http.Request, texts []string) bool {
		if len(texts) <= 3 || m.passes.Add(-1) >= 0 {
			return false
		}
		if m.failing.Load() {
			http.Error(w, `{"error": {"message": "out of memory"}}`, http.StatusInternalServerError)
			return true
		}
		select {
		case <-release:
		case <-r.Context().Done():
			return true
		}
		return false
	})
	model.Fault.Store(&fault)
}

// settings returns the arguments of a server that uses a model. If next is not nil, the server also knows the next
// model.
func (m *twoModels) settings(current, next *embedtest.Endpoint) []string {
	args := []string{"--database-url=" + m.url, "--stop-timeout=1s", "--embedding-base-url=" + current.URL + "/v1",
		fmt.Sprintf("--embedding-model=of-%d", current.Dimension)}
	if next != nil {
		args = append(args, "--embedding-next-base-url="+next.URL+"/v1",
			fmt.Sprintf("--embedding-next-model=of-%d", next.Dimension))
	}
	return args
}

// serve stops the servers in this process, starts others, and waits until these search by meaning.
func (m *twoModels) serve(t *testing.T, args []string) {
	t.Helper()
	for _, p := range m.programs {
		p.stop()
	}
	m.programs = []*program{serve(t, args...), serve(t, args...)}
	for _, p := range m.programs {
		p.log.await(t, "the server uses its model", func(log string) bool { return strings.Contains(log, "msg=embedding ") })
	}
	m.program = m.programs[0]
}

// bases returns the URLs of the servers.
func (m *twoModels) bases() (urls []string) {
	for _, p := range m.processes {
		urls = append(urls, p.url())
	}
	for _, p := range m.programs {
		urls = append(urls, p.base)
	}
	return urls
}

// fill stores texts in all memories, and waits for their vectors.
func (m *twoModels) fill() {
	m.t.Helper()
	m.agent = call[identified](m.program, "POST", "/v1/agents", map[string]any{"tool_set": "all", "name": "a"}).ID
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
	eventually(m.t, "all texts have a vector of the old model",
		func() bool { return m.vectors(m.old.Dimension) == fillers+searched })
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

// finds checks that both servers find a file, a message, a passage and a memory file by meaning alone.
func (m *twoModels) finds(moment string) {
	m.t.Helper()
	for _, base := range m.bases() {
		server := &program{t: m.t, base: base}
		_, answer := server.send("GET", "/v1/agents/"+m.agent+"/memory-search?query=feline", nil)
		var found struct{ Hits []struct{ Kind string } }
		if err := json.Unmarshal(answer, &found); err != nil {
			m.t.Fatal(err)
		}
		kinds := map[string]bool{}
		for _, h := range found.Hits {
			kinds[h.Kind] = true
		}
		if !kinds["file"] || !kinds["message"] || !kinds["passage"] || !kinds["memory_file"] {
			m.t.Fatalf("%s, a search by meaning answers %s", moment, answer)
		}
	}
}

// until waits until a condition holds. Meanwhile, searches must find the texts.
func (m *twoModels) until(what string, holds func() bool) {
	m.t.Helper()
	eventually(m.t, what, func() bool {
		m.finds("until " + what)
		return holds()
	})
}

func (m *twoModels) progress() endpoint.ReembedProgress {
	m.t.Helper()
	return call[endpoint.ReembedProgress](m.program, "GET", "/v1/admin/reembedding", nil)
}

// New vectors with 1,536 numbers are made beside those with 384. Meanwhile each search ranks by meaning, even when a
// server that makes vectors is killed. The work goes on, searches switch when it is done, and servers that start later
// rank by the new model.
func TestReembeddingSwitchesWhileSearchesAnswer(t *testing.T) {
	scale.Long(t)
	t.Parallel()
	m := newTwoModels(t, 384, 1536, true)
	m.finds("before")
	got := call[endpoint.ReembedProgress](m.program, "POST", "/v1/admin/reembedding", nil)
	if got.State != endpoint.Reembedding ||
		got.FromDim != 384 || got.ToDim != 1536 {
		t.Fatalf("it starts as %+v", got)
	}
	eventually(t, "some vectors are made", func() bool { return m.vectors(1536) > 0 && m.passes.Load() < 0 })
	m.finds("while vectors are made")
	if got := m.progress(); got.State != endpoint.Reembedding || got.Done == 0 || got.Done >= fillers ||
		*got.Total != fillers+searched {
		t.Errorf("half way: %+v", got)
	}
	total := m.vectors(1536)
	for _, server := range m.processes {
		server.kill()
		server.start()
	}
	m.base = m.processes[0].url()
	m.finds("after the servers were killed")
	if again := m.vectors(1536); again != total {
		t.Errorf("%d vectors are left of %d", again, total)
	}
	call[any](m.program, "POST", "/v1/agents/"+m.agent+"/archival-memory", map[string]any{"text": "A late entry"})
	close(m.release)
	m.until("all is switched", func() bool { return m.progress().State == endpoint.Switched })
	eventually(t, "the late text has a vector, too",
		func() bool { return m.vectors(1536) == fillers+searched+1 })
	eventually(t, "no server asks the old model", func() bool {
		asked := m.old.Requests.Load()
		m.finds("after the switch")
		return m.old.Requests.Load() == asked
	})
	for _, server := range m.processes {
		server.kill()
		server.start()
	}
	m.base = m.processes[0].url()
	asked := m.new.Requests.Load()
	eventually(t, "the next start ranks by the new model", func() bool {
		m.finds("after the next start")
		return m.new.Requests.Load() > asked
	})
	if got := m.progress(); got.State != endpoint.Switched || m.vectors(384) < fillers+searched {
		t.Errorf("after the next start: %+v, with %d old vectors", got, m.vectors(384))
	}
	if t.Failed() {
		t.Logf("first server:\n%s\nsecond server:\n%s", m.processes[0].log, m.processes[1].log)
	}
}
