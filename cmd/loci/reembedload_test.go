package main

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/embed/endpoint"
)

// reembedLoad is the load of clients that store and search while new vectors are made.
type reembedLoad struct {
	*twoModels
	folder, archive string
	stop            chan struct{}
	clients         sync.WaitGroup
	files, messages atomic.Int64 // numbers of stored ones; each has one vector
	passages        atomic.Int64
	searches        atomic.Int64
}

// repeat calls do until the load ends, with both servers in turn.
func (l *reembedLoad) repeat(do func(server *program, n int64)) {
	l.clients.Go(func() {
		for n := int64(0); !l.t.Failed(); n++ {
			select {
			case <-l.stop:
				return
			default:
				do(&program{t: l.t, base: l.processes[n%2].url()}, n)
			}
		}
	})
}

// begin uploads files, appends messages, stores passages and searches, all at the same time.
func (l *reembedLoad) begin() {
	l.repeat(func(server *program, n int64) {
		file := fileForm(l.t, fmt.Sprintf("late-%d.txt", n), fmt.Appendf(nil, "Report %d has a line.", n))
		call[stored](server, "POST", "/v1/folders/"+l.folder+"/upload", file)
		l.files.Add(1)
	})
	l.repeat(func(server *program, n int64) {
		call[any](server, "POST", "/v1/agents/"+l.agent+"/messages/capture", map[string]any{
			"messages": []map[string]any{{"role": "user", "content": fmt.Sprintf("Order %d was shipped", n)}}})
		l.messages.Add(1)
	})
	l.repeat(func(server *program, n int64) {
		call[any](server, "POST", "/v1/archives/"+l.archive+"/passages",
			map[string]any{"text": fmt.Sprintf("Late entry %d", n)})
		l.passages.Add(1)
	})
	for range 2 {
		l.repeat(func(*program, int64) {
			l.finds("under load")
			l.searches.Add(1)
		})
	}
}

// storesMore waits until each client has done something more.
func (l *reembedLoad) storesMore(moment string) {
	l.t.Helper()
	counts := []*atomic.Int64{&l.files, &l.messages, &l.passages, &l.searches}
	before := make([]int64, len(counts))
	for i, c := range counts {
		before[i] = c.Load()
	}
	eventually(l.t, "all clients are answered "+moment, func() bool {
		for i, c := range counts {
			if c.Load() < before[i]+3 {
				return l.t.Failed()
			}
		}
		return true
	})
}

// While vectors with 1,536 numbers are made beside those with 384, clients upload files, append messages, store
// passages and search. Each request is answered, and each search by meaning finds its text. In the end everything has a
// new vector, even texts that were stored meanwhile.
func TestReembeddingUnderLoad(t *testing.T) {
	scale.Long(t)
	t.Parallel()
	m := newTwoModels(t, 384, 1536, true)
	l := &reembedLoad{twoModels: m, stop: make(chan struct{}),
		folder:  call[[]identified](m.program, "GET", "/v1/folders/?name=f", nil)[0].ID,
		archive: call[[]identified](m.program, "GET", "/v1/archives?agent_id="+m.agent, nil)[0].ID}
	end := sync.OnceFunc(func() {
		close(l.stop)
		l.clients.Wait()
	})
	defer end()
	l.begin()
	l.storesMore("before")
	call[endpoint.ReembedProgress](m.program, "POST", "/v1/admin/reembedding", nil)
	eventually(t, "some vectors are made", func() bool { return m.vectors(1536) > 0 && m.passes.Load() < 0 })
	l.storesMore("while vectors are made")
	close(m.release)
	eventually(t, "all is switched", func() bool { return m.progress().State == endpoint.Switched })
	l.storesMore("after the switch")
	end()
	stored := fillers + searched + int(l.files.Load()+l.messages.Load()+l.passages.Load())
	eventually(t, "everything has a new vector", func() bool { return m.vectors(1536) == stored })
}
