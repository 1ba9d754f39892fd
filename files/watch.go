package files

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loci-memory/loci/db"
)

// Progress is how far a file is. Its last is that of a file whose status is Completed, Failed or Deleted.
type Progress struct {
	Status     Status  `json:"status"`
	ChunksDone int     `json:"chunks_done"`
	Chunks     int     `json:"chunks_total"`
	Error      *string `json:"error"`
}

// Deleted is the status that ends the progress of a file that is there no more.
const Deleted Status = "deleted"

// Done tells whether nothing follows.
func (p Progress) Done() bool {
	return p.Status == Completed || p.Status == Failed || p.Status == Deleted
}

func (p Progress) same(other Progress) bool {
	text := func(e *string) string {
		if e == nil {
			return ""
		}
		return *e
	}
	return p.Status == other.Status && p.ChunksDone == other.ChunksDone && p.Chunks == other.Chunks && text(p.Error) == text(other.Error)
}

func progressOf(f File) Progress {
	return Progress{Status: f.Status, ChunksDone: f.ChunksEmbedded, Chunks: f.TotalChunks, Error: f.ErrorMessage}
}

// MaxWatched is how many watches there may be at a time.
const MaxWatched = 1000

// Watches tell callers how far files are. One query in a while looks at all that are watched, however many they are.
type Watches struct {
	Store *Store
	Every time.Duration // between two looks; 0 is half a second

	mu      sync.Mutex
	watched map[*Watch]struct{}
	begin   chan struct{} // tells that there is something to look at
	ended   bool
}

// Watch is one caller's view of one file.
type Watch struct {
	Changes <-chan Progress // the latest news; closed after the last, and when the server stops

	file File
	org  db.Org
	last Progress
	news chan Progress
}

// Watch begins to watch a file; what it is now comes first. The caller ends the watch with Forget. ErrNotFound if the folder has no such
// file; ErrConflict if MaxWatched are watched.
func (w *Watches) Watch(ctx context.Context, org db.Org, folderID, fileID string) (*Watch, error) {
	f, err := w.Store.File(ctx, org, folderID, fileID, false)
	if err != nil {
		return nil, err
	}
	v := &Watch{file: f, org: org, last: progressOf(f), news: make(chan Progress, 1)}
	v.Changes = v.news
	v.news <- v.last
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.ended || v.last.Done():
		close(v.news)
		return v, nil
	case len(w.watched) >= MaxWatched:
		return nil, db.Conflict("%d files are watched already, which is the most; poll the file instead", MaxWatched)
	}
	w.ready()
	w.watched[v] = struct{}{}
	select {
	case w.begin <- struct{}{}:
	default:
	}
	return v, nil
}

// ready makes what a zero Watches lacks.
func (w *Watches) ready() {
	if w.watched == nil {
		w.watched, w.begin = map[*Watch]struct{}{}, make(chan struct{}, 1)
	}
}

// Forget ends a watch.
func (w *Watches) Forget(v *Watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.watched, v)
}

// Keep looks at what is watched until ctx ends, and then ends all watches. A look that fails is made again; failed is told why.
func (w *Watches) Keep(ctx context.Context, failed func(error)) {
	w.mu.Lock()
	w.ready()
	w.mu.Unlock()
	defer w.end()
	every := w.Every
	if every == 0 {
		every = 500 * time.Millisecond
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		wake := tick.C
		if w.idle() {
			wake = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-w.begin:
			continue
		case <-wake:
		}
		if err := w.look(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
	}
}

func (w *Watches) idle() bool { return w.Count() == 0 }

// Count is how many watches there are.
func (w *Watches) Count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.watched)
}

func (w *Watches) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	for v := range w.watched {
		close(v.news)
	}
	clear(w.watched)
}

// lookPatience bounds one look.
const lookPatience = 10 * time.Second

// look reads all files that are watched, by organization, and tells what changed.
func (w *Watches) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	w.mu.Lock()
	byOrg := map[db.Org][]*Watch{}
	for v := range w.watched {
		byOrg[v.org] = append(byOrg[v.org], v)
	}
	w.mu.Unlock()
	for _, org := range slices.Sorted(maps.Keys(byOrg)) {
		now, err := w.Store.progress(ctx, org, byOrg[org])
		if err != nil {
			return err
		}
		for _, v := range byOrg[org] {
			p, there := now[v.file.Key]
			if !there {
				p = Progress{Status: Deleted}
			}
			w.tell(v, p)
		}
	}
	return nil
}

// progress reads the files of watches, by key.
func (s *Store) progress(ctx context.Context, org db.Org, watches []*Watch) (map[int64]Progress, error) {
	keys := make([]int64, len(watches))
	for i, v := range watches {
		keys[i] = v.file.Key
	}
	args := s.fileArgs(org, false)
	args["keys"] = keys
	list, err := db.All[File](ctx, s.db, fileRows+` AND f.key = ANY(@keys)`, args)
	now := make(map[int64]Progress, len(list))
	for _, f := range list {
		now[f.Key] = progressOf(f)
	}
	return now, err
}

// tell passes on what is new; news that the caller did not take yet are out of date.
func (w *Watches) tell(v *Watch, p Progress) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.watched[v]; !there || p.same(v.last) {
		return
	}
	v.last = p
	select {
	case <-v.news:
	default:
	}
	v.news <- p
	if p.Done() {
		close(v.news)
		delete(w.watched, v)
	}
}
