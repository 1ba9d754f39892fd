package files

import (
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/files/document"
)

// The queues of the work on files. Parsing is limited by processors, embedding by the endpoint. Large files have a
// queue of their own, so that a small one always finds a worker. So have documents that are read by child processes,
// which take long: plain text does not wait behind them.
const (
	QueueParse          = "parse"
	QueueLarge          = "parse_large"
	QueueDocuments      = "parse_documents"
	QueueLargeDocuments = "parse_large_documents"
	QueueEmbed          = "embed"
	QueueUpkeep         = "upkeep"
)

// Queues returns the queues, with the number of workers that each server has for them.
func Queues() map[string]river.QueueConfig {
	return map[string]river.QueueConfig{QueueParse: {MaxWorkers: 8}, QueueLarge: {MaxWorkers: 1},
		QueueDocuments: {MaxWorkers: 4}, QueueLargeDocuments: {MaxWorkers: 1},
		QueueEmbed: {MaxWorkers: 4}, QueueUpkeep: {MaxWorkers: 1}}
}

// ParseArgs is the job that makes a generation of a file's text and chunks.
type ParseArgs struct {
	Org        db.Org `json:"org"`
	FileKey    int64  `json:"file_key" river:"unique"`
	Generation int    `json:"generation" river:"unique"`

	KeepsClosed bool `json:"keeps_closed,omitempty"` // Upload.KeepsClosed

	queue.Start
	size      int64
	mediaType string
}

// Kind implements river.JobArgs.
func (ParseArgs) Kind() string { return "parse_file" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (a ParseArgs) InsertOpts() river.InsertOpts { return queue.Once(queueOf(a.size, a.mediaType)) }

// EmbedArgs is the job that embeds one batch of a file's chunks.
type EmbedArgs struct {
	Org          db.Org `json:"org" db:"org"`
	FileKey      int64  `json:"file_key" db:"file_key" river:"unique"`
	Generation   int    `json:"generation" db:"generation" river:"unique"`
	SpaceID      int16  `json:"space_id" db:"space_id" river:"unique"`
	FirstOrdinal int    `json:"first_ordinal" db:"first_ordinal" river:"unique"`

	queue.Start
}

// Kind implements river.JobArgs.
func (EmbedArgs) Kind() string { return "embed_chunks" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (EmbedArgs) InsertOpts() river.InsertOpts { return queue.Once(QueueEmbed) }

// EmbedFilesArgs is the job that embeds files of a folder that have one batch each.
type EmbedFilesArgs struct {
	Org     db.Org           `json:"org"`
	SpaceID int16            `json:"space_id" river:"unique"`
	Files   []FileGeneration `json:"files" river:"unique"`

	queue.Start
}

// FileGeneration names one generation of a file's text.
type FileGeneration struct {
	FileKey    int64 `json:"file_key"`
	Generation int   `json:"generation"`
}

// Kind implements river.JobArgs.
func (EmbedFilesArgs) Kind() string { return "embed_files" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (EmbedFilesArgs) InsertOpts() river.InsertOpts { return queue.Once(QueueEmbed) }

// ReparseArgs is the job that queues the files of a folder page by page: the files with keys above AfterKey, up to
// LastKey.
type ReparseArgs struct {
	Org       db.Org `json:"org"`
	FolderKey int64  `json:"folder_key" river:"unique"`
	AfterKey  int64  `json:"after_key" river:"unique"`
	LastKey   int64  `json:"last_key" river:"unique"`
}

// Kind implements river.JobArgs.
func (ReparseArgs) Kind() string { return "reparse_folder" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (ReparseArgs) InsertOpts() river.InsertOpts { return queue.Once(QueueUpkeep) }

// PurgeArgs is the job that deletes the rows of a deleted folder.
type PurgeArgs struct {
	Org       db.Org `json:"org"` // the folder's former organization
	FolderKey int64  `json:"folder_key" river:"unique"`
}

// Kind implements river.JobArgs.
func (PurgeArgs) Kind() string { return "purge_folder" }

// InsertOpts implements river.JobArgsWithInsertOpts.
func (PurgeArgs) InsertOpts() river.InsertOpts { return queue.Once(QueueUpkeep) }

// largeBytes is the size above which a file waits in QueueLarge. The index files_turn contains the same number.
const largeBytes = 1 << 20

func queueOf(size int64, mediaType string) string {
	isLarge, isDocument := size > largeBytes, document.Input{MediaType: mediaType}.IsDocument()
	switch {
	case isLarge && isDocument:
		return QueueLargeDocuments
	case isDocument:
		return QueueDocuments
	case isLarge:
		return QueueLarge
	}
	return QueueParse
}
