package main

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/embed/endpoint"
)

// Two servers make the vectors of a new model, with each kind of interruption, and then the vectors of a third model.
// No process is killed; see TestReembeddingSwitchesWhileSearchesAnswer.
func TestReembedding(t *testing.T) {
	t.Parallel()
	m := newTwoModels(t, 96, 128, false)
	m.new.Refuse = "entry 133"
	m.isCancelled()
	m.outlivesItsEndpoint()
	m.adoptsAnIncompleteModel(t)
	m.switchesToTheBuiltinModelAndBack(t)
	m.switchesToADirectory(t)
}

// loci runs a command of reembed, and checks its output.
func (m *twoModels) loci(wantCode int, want string, args ...string) {
	m.t.Helper()
	out := newLines()
	code := run(m.t.Context(), append(append([]string{"reembed"}, args...), "--addr="+m.base), out, out)
	if code != wantCode || !strings.Contains(out.String(), want) {
		m.t.Errorf("reembed %v: got %d %s, want %d and %s", args, code, out, wantCode, want)
	}
}

// isCancelled begins and cancels a reembedding. The old vectors and searches stay unchanged, and the next start uses
// the new vectors that were made.
func (m *twoModels) isCancelled() {
	m.t.Helper()
	m.loci(0, "No vectors of another model")
	m.loci(0, "running", "start", "--detach")
	eventually(m.t, "some vectors are made", func() bool { return m.vectors(128) > 0 && m.passes.Load() < 0 })
	m.loci(0, "cancelled", "cancel")
	m.loci(1, "nothing to cancel", "cancel")
	m.finds("after the cancellation")
	close(m.release)
	m.until("the slices in hand end", func() bool { return m.progress().State == endpoint.Cancelled })
	if m.vectors(96) != fillers+searched || m.vectors(128) >= fillers {
		m.t.Errorf("%d old vectors and %d new ones", m.vectors(96), m.vectors(128))
	}
}

// outlivesItsEndpoint goes on with an endpoint that fails in between. The endpoint is asked again until it answers.
// Meanwhile, the progress says why it waits, searches are answered, and the reembedding can be cancelled and started
// again. A text that the endpoint refuses keeps its old vector, and is counted.
func (m *twoModels) outlivesItsEndpoint() {
	m.t.Helper()
	m.failing.Store(true)
	m.passes.Store(1)
	waits := func() bool {
		got := m.progress()
		return got.State == endpoint.Reembedding && got.Error != nil && strings.Contains(*got.Error, "status 500")
	}
	call[any](m.program, "POST", "/v1/admin/reembedding", nil)
	m.until("the progress says why it waits", waits)
	beforeCancel := m.vectors(128)
	if got := m.progress(); got.Done == 0 || got.Done >= fillers || beforeCancel < int(got.Done) {
		m.t.Errorf("of %d vectors that are made, the progress is %+v", beforeCancel, got)
	}
	if got := call[endpoint.ReembedProgress](m.program, "DELETE", "/v1/admin/reembedding", nil); got.State !=
		endpoint.Cancelled || got.Error != nil {
		m.t.Errorf("cancelled while the endpoint fails: %+v", got)
	}
	m.finds("after the cancellation")
	if again := m.vectors(128); again < beforeCancel {
		m.t.Errorf("%d of %d vectors are left after the cancellation", again, beforeCancel)
	}
	started := make(chan struct{})
	go func() {
		defer close(started)
		m.loci(0, "Searches rank by of-128, with 128 numbers", "start")
	}()
	m.until("it waits again after another start", waits)
	m.passes.Store(1 << 40)
	m.until("all is switched once the endpoint answers", func() bool { return m.progress().State == endpoint.Switched })
	<-started
	if got := m.progress(); got.Refused != 1 || got.Done != fillers+searched-1 || got.Error != nil {
		m.t.Errorf("at the end: %+v; want one text refused", got)
	}
	if old, newCount := m.vectors(96), m.vectors(128); old != fillers+searched || newCount != fillers+searched-1 {
		m.t.Errorf("%d old vectors and %d new ones", old, newCount)
	}
	m.finds("after the switch")
}

// adoptsAnIncompleteModel starts servers with a model that does not have all its vectors yet. The servers use it.
// Existing vectors serve, and the others are made as for any model.
func (m *twoModels) adoptsAnIncompleteModel(t *testing.T) {
	third := meaning(t, 64)
	m.third = third
	m.failing.Store(false)
	m.new.Fault.Store(nil)
	m.passes.Store(2)
	m.interrupt(third)
	m.serve(t, m.settings(m.new, third))
	call[any](m.program, "POST", "/v1/admin/reembedding", nil)
	eventually(t, "some vectors are made", func() bool { return m.vectors(64) > 0 && m.passes.Load() < 0 })
	for _, p := range m.programs {
		p.stop()
	}
	close(m.release)
	asked := m.new.Requests.Load()
	m.serve(t, m.settings(third, nil))
	eventually(t, "all texts have vectors of the third model", func() bool {
		return m.vectors(64) == fillers+searched
	})
	m.finds("by the third model")
	if got := m.progress(); got.State != endpoint.Switched || m.new.Requests.Load() != asked {
		t.Errorf("the progress is %+v, and the model before was asked %d times", got, m.new.Requests.Load()-asked)
	}
}

// switchesToTheBuiltinModelAndBack makes vectors of the built-in model beside those of the third model, switches, and
// then switches back. For both models, a feline is a cat.
func (m *twoModels) switchesToTheBuiltinModelAndBack(t *testing.T) {
	third := m.third
	m.serve(t, append(m.settings(third, nil), "--embedding-next=builtin"))
	m.loci(0, "Searches rank by all-MiniLM-L6-v2, with 384 numbers", "start")
	if got := m.vectors(384); got != fillers+searched {
		t.Errorf("%d vectors of the built-in model, want %d", got, fillers+searched)
	}
	m.finds("after the switch to the built-in model")
	last := meaning(t, 32)
	m.serve(t, []string{"--database-url=" + m.url, "--stop-timeout=1s", "--embedding=builtin",
		"--embedding-next-base-url=" + last.URL + "/v1", "--embedding-next-model=of-32"})
	m.finds("by the built-in model alone")
	m.loci(0, "Searches rank by of-32, with 32 numbers", "start")
	m.finds("after the switch from the built-in model")
	if got := m.vectors(32); got != fillers+searched {
		t.Errorf("%d vectors of the last model, want %d", got, fillers+searched)
	}
}

// switchesToADirectory makes vectors with a model in a directory beside those of the built-in one, and switches.
func (m *twoModels) switchesToADirectory(t *testing.T) {
	directory := petModel(t, "pets")
	args := []string{"--database-url=" + m.url, "--stop-timeout=1s"}
	m.serve(t, append(args, "--embedding=builtin", "--embedding-next-model-dir="+directory))
	m.loci(0, "Searches rank by pets, with 8 numbers", "start")
	if got := m.vectors(8); got != fillers+searched {
		t.Errorf("%d vectors of the model in a directory, want %d", got, fillers+searched)
	}
	m.finds("after the switch to the model in a directory")
	m.serve(t, append(args, "--embedding-model-dir="+directory))
	m.finds("by the model in a directory alone")
}
