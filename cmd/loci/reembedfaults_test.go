package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed"
	"github.com/loci-memory/loci/embed/embedtest"
)

// An endpoint that fails midway is asked again until it answers. Meanwhile the progress says why it waits, searches
// answer, and it can be cancelled and started again. A text that it refuses keeps its old vector and is counted.
func TestReembeddingOutlivesItsEndpoint(t *testing.T) {
	t.Parallel()
	m := newTwoModels(t, 1000)
	m.new.Refuse = "entry 133"
	fails := embedtest.Fault(func(w http.ResponseWriter, _ *http.Request, texts []string) bool {
		if len(texts) > 3 && m.passes.Add(-1) < 0 {
			http.Error(w, `{"error": {"message": "out of memory"}}`, http.StatusInternalServerError)
			return true
		}
		return false
	})
	m.passes.Store(2)
	m.new.Fault.Store(&fails)
	call[any](m.program, "POST", "/v1/admin/reembedding", nil)
	waits := func() bool {
		m.finds("while the endpoint fails")
		got := m.progress()
		return got.State == embed.Reembedding && got.Error != nil && strings.Contains(*got.Error, "status 500")
	}
	embedtest.Eventually(t, "the progress says why it waits", waits)
	made := m.vectors(1536)
	if got := m.progress(); got.Done == 0 || got.Done >= fillers || made < int(got.Done) {
		t.Errorf("of %d vectors that are made, the progress is %+v", made, got)
	}
	if got := call[embed.ReembedProgress](m.program, "DELETE", "/v1/admin/reembedding", nil); got.State !=
		embed.Cancelled || got.Error != nil {
		t.Errorf("cancelled while the endpoint fails: %+v", got)
	}
	m.finds("after the cancellation")
	if again := m.vectors(1536); again < made {
		t.Errorf("%d of %d vectors are left after the cancellation", again, made)
	}
	call[any](m.program, "POST", "/v1/admin/reembedding", nil)
	embedtest.Eventually(t, "it waits again after another start", waits)
	m.passes.Store(1 << 40)
	embedtest.Eventually(t, "all is switched once the endpoint answers", func() bool {
		m.finds("until the switch")
		return m.progress().State == embed.Switched
	})
	if got := m.progress(); got.Refused != 1 || got.Done != fillers+searched-1 || got.Error != nil {
		t.Errorf("at the end: %+v; want one text refused", got)
	}
	if old, now := m.vectors(384), m.vectors(1536); old != fillers+searched || now != fillers+searched-1 {
		t.Errorf("%d old vectors and %d new ones", old, now)
	}
	m.finds("after the switch")
}

// Servers whose settings name the new model before its vectors are all made take it: the rest is made as for any model,
// and what is made already serves.
func TestAnIncompleteModelIsAdopted(t *testing.T) {
	t.Parallel()
	m := newTwoModels(t, 2)
	call[any](m.program, "POST", "/v1/admin/reembedding", nil)
	embedtest.Eventually(t, "some vectors are made", func() bool { return m.vectors(1536) > 0 && m.passes.Load() < 0 })
	for i, server := range m.servers {
		server.kill()
		args := []string{"--embedding-base-url=" + m.new.URL + "/v1", "--embedding-model=new"}
		for _, arg := range server.args {
			if !strings.HasPrefix(arg, "--embedding-") {
				args = append(args, arg)
			}
		}
		server.args = append(args[2:len(args):len(args)], args[:2]...)
		if i == 0 {
			close(m.release)
		}
		server.start()
	}
	m.base = m.servers[0].url()
	asked := m.old.Requests.Load()
	embedtest.Eventually(t, "all texts have vectors of the new model", func() bool {
		return m.vectors(1536) == fillers+searched
	})
	m.finds("by the new model")
	if got := m.progress(); got.State != embed.Switched || m.old.Requests.Load() != asked {
		t.Errorf("the progress is %+v, and the old model was asked %d times", got, m.old.Requests.Load()-asked)
	}
}
