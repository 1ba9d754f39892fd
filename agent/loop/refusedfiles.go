package loop

import (
	"crypto/sha256"
	"sync"
)

// refusedFiles are the open files that providers refused in runs of this server. The next runs of an agent leave their
// texts out at once, until its open files or its model are others.
type refusedFiles struct {
	mu sync.Mutex
	of map[agentModel]openFiles
}

// agentModel is an agent with the handle of its model.
type agentModel struct{ agent, model string }

// openFiles are the files that an agent has open.
type openFiles struct {
	texts [sha256.Size]byte
	seq   int64 // of the agent's newest event when they were looked at
}

// maxRefusedFiles bounds how many agents are remembered: of another one the provider is asked again.
const maxRefusedFiles = 4_096

func (r *refusedFiles) get(of agentModel) (openFiles, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	files, is := r.of[of]
	return files, is
}

func (r *refusedFiles) put(of agentModel, files openFiles) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other := range r.of {
		if len(r.of) < maxRefusedFiles {
			break
		}
		delete(r.of, other)
	}
	r.of[of] = files
}

func (r *refusedFiles) forget(of agentModel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, of)
}
