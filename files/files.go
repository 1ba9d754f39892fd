// Package files keeps uploaded documents, turns them into searchable chunks, and tracks which of them an agent has open. It owns
// folders, files, their originals, segments, chunks and vectors, and what is attached to and open in which agent; it knows an agent
// only by its id.
package files

import (
	"encoding/json"
	"time"
)

// Status says how far a file's text has come; it is derived from the work that is left.
type Status string

// The way of a file. Completed and Failed are final until the file is parsed again.
const (
	Pending   Status = "pending"
	Parsing   Status = "parsing"
	Embedding Status = "embedding"
	Completed Status = "completed"
	Failed    Status = "error"
)

// Folder is a set of files that is attached to agents as one.
type Folder struct {
	Key             int64           `db:"key" json:"-"`
	ID              string          `db:"id" json:"id"`
	Name            string          `db:"name" json:"name"`
	Description     *string         `db:"description" json:"description"`
	Instructions    *string         `db:"instructions" json:"instructions"`
	Metadata        json.RawMessage `db:"metadata" json:"metadata"`
	ChunkTokens     int             `db:"chunk_tokens" json:"-"`
	OverlapTokens   int             `db:"overlap_tokens" json:"-"`
	EmbeddingConfig EmbeddingConfig `db:"-" json:"embedding_config"`
	CreatedAt       time.Time       `db:"created_at" json:"created_at"`
	UpdatedAt       time.Time       `db:"updated_at" json:"updated_at"`
	CreatedByID     *string         `db:"-" json:"created_by_id"`
	LastUpdatedByID *string         `db:"-" json:"last_updated_by_id"`
}

// EmbeddingConfig describes, in Letta's terms, what a folder's chunks are embedded with. Without an embeddings endpoint that is the
// built-in word weights.
type EmbeddingConfig struct {
	EndpointType string  `json:"embedding_endpoint_type"` // always "openai": the protocol
	Endpoint     *string `json:"embedding_endpoint"`
	Model        string  `json:"embedding_model"`
	Dimension    int     `json:"embedding_dim"`
	ChunkTokens  int     `json:"embedding_chunk_size"`
	BatchSize    int     `json:"batch_size"`
	Handle       string  `json:"handle"` // provider/model, by which clients choose it
}

// NewFolder is what a folder is created from. Sizes of 0 are the defaults: chunks of 300 tokens that overlap by 50.
type NewFolder struct {
	Name          string
	Description   *string
	Instructions  *string
	Metadata      json.RawMessage
	ChunkTokens   int
	OverlapTokens int
}

// FolderUpdate changes the fields that are not nil.
type FolderUpdate struct {
	Name         *string
	Description  *string
	Instructions *string
	Metadata     json.RawMessage
}

// File is one uploaded document.
type File struct {
	Key              int64     `db:"key" json:"-"`
	ID               string    `db:"id" json:"id"`
	FolderID         string    `db:"folder_id" json:"source_id"`
	Name             string    `db:"name" json:"file_name"`
	OriginalName     string    `db:"original_name" json:"original_file_name"`
	Path             *string   `db:"-" json:"file_path"`
	MediaType        string    `db:"media_type" json:"file_type"`
	SizeBytes        int64     `db:"size_bytes" json:"file_size"`
	CreationDate     *string   `db:"-" json:"file_creation_date"`
	LastModifiedDate *string   `db:"-" json:"file_last_modified_date"`
	Status           Status    `db:"status" json:"processing_status"`
	ErrorMessage     *string   `db:"error_message" json:"error_message"`
	TotalChunks      int       `db:"total_chunks" json:"total_chunks"`
	ChunksEmbedded   int       `db:"chunks_embedded" json:"chunks_embedded"`
	Lines            int       `db:"lines" json:"total_lines"`
	TotalPages       *int      `db:"total_pages" json:"total_pages"` // pages, slides or sheets; nil where the format has none
	Content          *string   `db:"content" json:"content"`
	CreatedAt        time.Time `db:"created_at" json:"created_at"`
	UpdatedAt        time.Time `db:"updated_at" json:"updated_at"`
}

// Duplicates says what an upload does whose name the folder has already.
type Duplicates string

// Suffix, the default, stores name_(1).ext beside it; Skip keeps what is there; Reject fails; Replace takes its place once the new
// text is ready.
const (
	Suffix  Duplicates = "suffix"
	Skip    Duplicates = "skip"
	Reject  Duplicates = "error"
	Replace Duplicates = "replace"
)

// AgentFile is a file as an agent has it: attached through a folder, open or closed.
type AgentFile struct {
	ID             string     `db:"id" json:"id"` // file_agent- and the file's own UUID
	FileID         string     `db:"file_id" json:"file_id"`
	FileName       string     `db:"file_name" json:"file_name"` // folder/name, as the tools know it
	FolderID       string     `db:"folder_id" json:"folder_id"`
	FolderName     string     `db:"folder_name" json:"folder_name"`
	IsOpen         bool       `db:"is_open" json:"is_open"`
	LastAccessedAt *time.Time `db:"last_accessed_at" json:"last_accessed_at"`
	VisibleContent *string    `db:"-" json:"visible_content"` // nil unless open
	StartLine      *int       `db:"-" json:"start_line"`      // 1-based, of what is visible
	EndLine        *int       `db:"-" json:"end_line"`
}

// OpenRequest asks for a view of a file: from line Offset (0-based) Length lines, to the end where Length is nil.
type OpenRequest struct {
	FileName string `json:"file_name"`
	Offset   *int   `json:"offset"`
	Length   *int   `json:"length"`
}

// Opened is one file that Open opened. Content is numbered as the file's lines are, cut at whole lines to what Open may return.
type Opened struct {
	ID         string `json:"id"`
	Name       string `json:"name"` // folder/name
	FirstLine  int    `json:"first_line"`
	LastLine   int    `json:"last_line"`
	Content    string `json:"content"`
	NextOffset *int   `json:"next_offset"` // where the rest begins, nil if nothing of the request is left

	ShownNext *int `json:"-"` // where what the prompt does not show begins, nil if it shows all of the request

	Request  OpenRequest `json:"-"`
	WasOpen  bool        `json:"-"`
	Previous *LineRange  `json:"-"` // what of it was open before, where that was another range
}

// LineRange is a stretch of lines: Offset is 0-based, Length nil means to the end.
type LineRange struct {
	Offset int
	Length *int
}

// Opening is what Open did.
type Opening struct {
	Files         []Opened
	ClosedOthers  []string // names closed because the caller asked for it
	ClosedToLimit []string // names closed to keep the limit, least recently used first
}

// Query asks for the chunks of an agent's attached files that fit a question best.
type Query struct {
	Text    string
	Limit   int    // chunks, at most SearchMax
	Include string // glob or regular expression on folder/name; empty is all
}

// SearchMax is the most chunks one search returns.
const SearchMax = 50

// Hit is a chunk that a search found. Lines are 1-based, inclusive.
type Hit struct {
	ChunkKey    int64   `db:"key"`
	FileID      string  `db:"file_id"`
	FileName    string  `db:"file_name"`
	Ordinal     int     `db:"ordinal"`
	FirstLine   int     `db:"first_line"`
	LastLine    int     `db:"last_line"`
	FirstPage   *int    `db:"first_page"`
	LastPage    *int    `db:"last_page"`
	MediaType   string  `db:"media_type"`
	Heading     string  `db:"heading"`
	Text        string  `db:"text"`
	Score       float64 `db:"-"`
	WordsRank   int     `db:"-"` // 1-based place by words, 0 if not among them
	MeaningRank int     `db:"-"` // 1-based place by meaning, 0 if not among them
}

// Pages are those that the chunk stands on.
func (h Hit) Pages() Pages {
	if h.FirstPage == nil || h.LastPage == nil {
		return Pages{}
	}
	return Pages{Word: pageWord(h.MediaType), First: *h.FirstPage, Last: *h.LastPage}
}

// Ranking says what a search was ranked by.
type Ranking string

// Words alone where no embeddings endpoint is configured, or where it did not answer.
const (
	ByWords           Ranking = "words"
	ByWordsAndMeaning Ranking = "words and meaning"
)

// Results are the best chunks first. Note, if not empty, is a sentence on what the search could not do.
type Results struct {
	Hits     []Hit
	Ranking  Ranking
	Note     string
	Attached bool // files are, with text or without, that Include fits
}

// Listed is a file in an agent's listing.
type Listed struct {
	FileName  string `db:"file_name"`
	Status    Status `db:"status"`
	MediaType string `db:"media_type"`
	SizeBytes int64  `db:"size_bytes"`
	Lines     int    `db:"lines"`
	IsOpen    bool   `db:"is_open"`
}

// Listing is a page of an agent's attached files by name.
type Listing struct {
	Files []Listed
	Total int // that fit the pattern
}

// Passage is a chunk in Letta's shape.
type Passage struct {
	Key       int64     `db:"key" json:"-"`
	ID        string    `db:"id" json:"id"`
	Text      string    `db:"text" json:"text"`
	FolderID  string    `db:"folder_id" json:"source_id"`
	FileID    string    `db:"file_id" json:"file_id"`
	FileName  string    `db:"file_name" json:"file_name"`
	Metadata  Place     `db:"-" json:"metadata"`
	Tags      []string  `db:"-" json:"tags"`
	FirstLine int       `db:"first_line" json:"-"`
	LastLine  int       `db:"last_line" json:"-"`
	FirstPage *int      `db:"first_page" json:"-"`
	LastPage  *int      `db:"last_page" json:"-"`
	Heading   string    `db:"heading" json:"-"`
	CreatedAt time.Time `db:"created_at" json:"created_at"`
}

// Place is where in its file a passage stands.
type Place struct {
	FirstLine int    `json:"first_line"`
	LastLine  int    `json:"last_line"`
	FirstPage *int   `json:"first_page"` // of pages, slides or sheets, from 1; nil where the file has none
	LastPage  *int   `json:"last_page"`
	Heading   string `json:"heading"`
}

// Total is what a folder holds.
type Total struct {
	FolderID   string `db:"folder_id" json:"source_id"`
	FolderName string `db:"folder_name" json:"source_name"`
	Files      int    `db:"file_count" json:"file_count"`
	SizeBytes  int64  `db:"total_size" json:"total_size"`
}
