package files

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/loci-memory/loci/db"
)

// Limits of uses that wait to be recorded.
const (
	maxUsers  = 1_000            // agents; for further agents, uses are recorded before their searches are answered
	useLength = 10 * time.Second // time limit for recording the uses of one agent's files
)

// user is an agent that uses its open files, for the user with the key owner; 0 is nobody.
type user struct {
	org     db.Org
	agentID string
	owner   int64
}

// by returns the one who uses files within a reach.
func by(org db.Org, r Reach) user { return user{org, r.AgentID, r.Users.User()} }

// reach is the reach of a user's list of open files.
func (u user) reach() Reach {
	if u.owner == 0 {
		return Of(u.agentID)
	}
	return Reach{u.agentID, db.OfUser(u.owner)}
}

// uses holds the uses of files by answered searches until RecordUses records them. The zero value is ready to use.
type uses struct {
	mu        sync.Mutex
	running   bool
	waiting   map[user][]string      // ids of the files, last used last
	recording map[user]chan struct{} // closed when the recording ends
	arrived   chan struct{}          // has a value when some may be waiting
}

// use is a search's use of files that an agent has open.
type use struct {
	user
	fileIDs []string // last used last
	inOrder bool     // the files were the last used already, in this order
}

// add adds a use, unless it changes nothing. It returns false if the use must be recorded now, because nobody records
// uses, or too many wait.
func (w *uses) add(u use) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := w.waiting[u.user]
	switch {
	case u.inOrder && waiting == nil && w.recording[u.user] == nil:
		return true
	case !w.running || len(w.waiting) >= maxUsers && waiting == nil:
		return false
	}
	earlier := slices.DeleteFunc(waiting, func(id string) bool { return slices.Contains(u.fileIDs, id) })
	w.waiting[u.user] = append(earlier, u.fileIDs...)
	select {
	case w.arrived <- struct{}{}:
	default:
	}
	return true
}

// start lets uses wait.
func (w *uses) start() (arrived <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = true
	w.waiting, w.recording, w.arrived = map[user][]string{}, map[user]chan struct{}{}, make(chan struct{}, 1)
	return w.arrived
}

// end stops letting uses wait.
func (w *uses) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = false
}

// next returns an agent with waiting uses, if there is one.
func (w *uses) next() (u user, any bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for u = range w.waiting {
		return u, true
	}
	return user{}, false
}

// take takes an agent's waiting uses, after those taken before are recorded. The caller calls done when it has recorded
// them. If there are none, done is nil.
func (w *uses) take(ctx context.Context, u user) (fileIDs []string, done func(), err error) {
	for {
		w.mu.Lock()
		before := w.recording[u]
		if before == nil {
			break
		}
		w.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
	defer w.mu.Unlock()
	fileIDs = w.waiting[u]
	if len(fileIDs) == 0 {
		return nil, nil, nil
	}
	delete(w.waiting, u)
	over := make(chan struct{})
	w.recording[u] = over
	return fileIDs, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.recording, u)
		close(over)
	}, nil
}
