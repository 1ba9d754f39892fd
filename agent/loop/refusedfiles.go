package loop

import (
	"crypto/sha256"
	"sync"
)

// refusedFiles are open files that providers refused in runs of this server. An agent's next runs leave their texts out
// at once, until its open files or its model change.
type refusedFiles struct {
	mu sync.Mutex
	of map[agentModel]openFiles
}

// agentModel is an agent and the handle of its model.
type agentModel struct{ agent, model string }

// openFiles identifies the set of files that an agent has open.
type openFiles struct {
	texts [sha256.Size]byte
	seq   int64 // seq of the agent's newest event when the files were read
}

// maxRefusedFiles bounds how many agents are remembered. For any other agent the provider is asked again.
const maxRefusedFiles = 4_096

func (r *refusedFiles) get(of agentModel) (openFiles, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	files, is := r.of[of]
	return files, is
}

func (r *refusedFiles) put(key agentModel, files openFiles) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for other := range r.of {
		if len(r.of) < maxRefusedFiles {
			break
		}
		delete(r.of, other)
	}
	r.of[key] = files
}

func (r *refusedFiles) forget(of agentModel) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, of)
}
