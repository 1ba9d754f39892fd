package files

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
)

// Progress is how far the work on a file has come.
type Progress struct {
	Status     Status  `json:"status" enum:"pending,parsing,embedding,completed,error,deleted"`
	ChunksDone int     `json:"chunks_done"`
	Chunks     int     `json:"chunks_total"`
	Error      *string `json:"error"`

	PagesRead *int `json:"pages_read" doc:"Of pages_total, while a document is parsed that takes long; otherwise null."`
	Pages     *int `json:"pages_total" doc:"Of the document; null while that is not known."`
}

// Deleted is the status of a file that was deleted while its progress was followed.
const Deleted Status = "deleted"

// Done reports whether the work on the file has ended.
func (p Progress) Done() bool {
	return p.Status == Completed || p.Status == Failed || p.Status == Deleted
}

func progressOf(f File) Progress {
	return Progress{Status: f.Status, ChunksDone: f.ChunksEmbedded, Chunks: f.TotalChunks, Error: f.ErrorMessage,
		PagesRead: f.PagesRead, Pages: f.TotalPages}
}

type progressKey struct {
	org  db.Org
	file int64
}

// ProgressPoller tells subscribers when the progress of files changes.
type ProgressPoller = event.Poller[progressKey, Progress]

// ProgressSubscription receives the progress of one file.
type ProgressSubscription = event.Subscription[progressKey, Progress]

// NewProgressPoller returns a poller that reads the progress of all followed files at the given interval while its Run
// runs.
func (s *Store) NewProgressPoller(every time.Duration) *ProgressPoller {
	return event.NewPoller(every, s.progress)
}

// FollowProgress subscribes to the progress of a file, beginning with the current progress. The caller closes the
// subscription. ErrNotFound if the folder has no such file; ErrTooMany if the organization has event.MaxSubscriptions.
func (s *Store) FollowProgress(ctx context.Context, p *ProgressPoller, org db.Org, folderID, fileID string) (
	*ProgressSubscription, error) {
	f, err := s.File(ctx, org, folderID, fileID, false)
	if err != nil {
		return nil, err
	}
	return p.Subscribe(org, progressKey{org, f.Key}, progressOf(f))
}

// progress reads the progress of files, organization by organization. A file that no longer exists is Deleted.
func (s *Store) progress(ctx context.Context, keys []progressKey) (map[progressKey]Progress, error) {
	found, byOrg := make(map[progressKey]Progress, len(keys)), map[db.Org][]int64{}
	for _, k := range keys {
		found[k], byOrg[k.org] = Progress{Status: Deleted}, append(byOrg[k.org], k.file)
	}
	for _, org := range slices.Sorted(maps.Keys(byOrg)) {
		args := s.fileArgs(org, false)
		args["keys"] = byOrg[org]
		list, err := db.All[File](ctx, s.db, fileRows+` AND f.key = ANY(@keys)`, args)
		if err != nil {
			return nil, err
		}
		for _, f := range list {
			found[progressKey{org, f.Key}] = progressOf(f)
		}
	}
	return found, nil
}
