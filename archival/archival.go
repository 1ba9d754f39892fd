// Package archival stores passages in archives, which agents share and search. It owns the tables of archives, passages
// and attachments; it knows an agent only by its id.
//
// Each file uses those that are named before it:
//   - what they have in common: archival.go largearchives.go store.go embedding.go
//   - archives and their passages: records.go archive.go validity.go attach.go insert.go passage.go insertbatch.go
//   - search: few.go search.go
//   - upkeep in the background, and vectors: backlog.go cleanup.go remade.go vectors.go
//   - erasures, and archives in the file of an agent: erase.go portable.go
package archival

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/rank"
)

// Archive is a set of passages, attached to agents as a whole.
type Archive struct {
	Key         int64           `db:"key" json:"-"`
	ID          string          `db:"id" json:"id"`
	Name        string          `db:"name" json:"name"`
	Description *string         `db:"description" json:"description"`
	Metadata    json.RawMessage `db:"metadata" json:"metadata"`
	Embedding   *string         `db:"embedding" json:"-"` // the model that the creator of the archive named
	CreatedAt   time.Time       `db:"created_at" json:"created_at"`
	UpdatedAt   time.Time       `db:"updated_at" json:"updated_at"`
	db.Makers

	Vectors *endpoint.Status `db:"embedding_status" json:"embedding_status"` // nil before the first embeddings endpoint
}

// NewArchive describes an archive to create.
type NewArchive struct {
	Name        string // 1 to 255 characters
	Description *string
	Metadata    json.RawMessage
	Embedding   *string
}

// ArchiveUpdate changes the fields that are not nil.
type ArchiveUpdate struct {
	Name        *string
	Description *string
	Metadata    json.RawMessage
}

// Passage is one text of an archive.
type Passage struct {
	Key        int64           `db:"key" json:"-"`
	ID         string          `db:"id" json:"id"`
	ArchiveID  string          `db:"archive_id" json:"archive_id"`
	Text       string          `db:"text" json:"text"`
	Tags       []string        `db:"tags" json:"tags"` // each once, in the order given
	Metadata   json.RawMessage `db:"metadata" json:"metadata"`
	HappenedAt time.Time       `db:"happened_at" json:"created_at"` // when the fact happened; else as StoredAt
	StoredAt   time.Time       `db:"created_at" json:"stored_at"`
	UpdatedAt  time.Time       `db:"updated_at" json:"updated_at"`

	db.Validity
	SupersededBy *string `db:"superseded_by" json:"superseded_by" doc:"The passage that took its place."`
	Ended        bool    `db:"ended" json:"ended" doc:"It holds no longer."` // when it was read

	Provenance *db.Provenance `db:"provenance" json:"provenance" doc:"Who stored the text; null if unknown."`
}

// Draft is a passage to insert.
type Draft struct {
	Text       string
	Tags       []string
	Metadata   json.RawMessage // nil is {}
	HappenedAt *time.Time      // nil is now

	db.Validity        // a nil ValidFrom of a draft that supersedes is now
	Supersedes  string // the id of a passage of the archive, which ends where this one begins
}

// Inserted is a passage that an insert stored or found; its Key is 0.
type Inserted struct {
	Passage
	Duplicate bool `db:"duplicate"` // the archive had the text already, and the passage did not change

	LeftTags   []string `db:"-"` // of a duplicate: the draft's tags that the passage lacks
	LeftFields []string `db:"-"` // of a duplicate: the names of the draft's other fields that the passage has otherwise
}

// Left reports whether a draft has something that the passage of the same text has not.
func (in Inserted) Left() bool { return len(in.LeftTags) > 0 || len(in.LeftFields) > 0 }

// PassageUpdate changes the fields that are not nil; a non-nil slice replaces the tags.
type PassageUpdate struct {
	Text     *string
	Tags     []string
	Metadata json.RawMessage

	ValidFrom, ValidUntil *db.Bound
	SupersededBy          *string // the id of a passage of the archive, where this one ends; empty is none
}

// SupersededError says that another passage superseded a passage already. It is an ErrConflict, and holds the passage
// as it was read.
type SupersededError struct{ Current Passage }

func (e *SupersededError) Error() string {
	return fmt.Sprintf("%s was superseded by %s already; nothing was changed", e.Current.ID, *e.Current.SupersededBy)
}

// Unwrap makes it an ErrConflict.
func (e *SupersededError) Unwrap() error { return db.ErrConflict }

// Match is how many of a search's tags a passage must have.
type Match string

// The passage has any of the tags, or all of them.
const (
	Any Match = "any"
	All Match = "all"
)

// Query asks for the passages that Text is about, or for the newest if it is empty. Empty fields match all passages.
type Query struct {
	Text       string
	AgentID    string     // whose archives are searched
	ArchiveID  string     // the one archive to search, which the agent must have if AgentID is set
	Tags       []string   // an empty one finds nothing
	Match      Match      // empty is Any
	Start, End *time.Time // of HappenedAt, both inclusive
	Held       db.Held    // what does not hold is left out
	Limit      int        // 1 to SearchMax; 0 is 1
	Offset     int        // of the hits, the first that are left out
	After      string     // the id of a hit; the hits behind it are returned, of which Offset are left out
	AsWritten  bool       // no other spellings are searched
	Explain    bool       // hits and results say how they were ranked

	WordsOnly   bool    // the embeddings endpoint is not asked
	MeaningOnly bool    // but by words where the endpoint does not answer
	Weight      float64 // of meaning, as rank.Question has it
}

// SearchMax is the most passages that a search returns.
const SearchMax = 100

// Hit is a passage that a search found.
type Hit struct {
	Passage
	Score       float64 `db:"score"`
	WordsRank   int     `db:"words_rank"`   // from 1; 0 if it shares no word with the query
	MeaningRank int     `db:"meaning_rank"` // from 1; 0 if it was not ranked by meaning

	Explanation *rank.HitExplanation `db:"-"` // if the query asks for it
}

// Results are the passages that a search found, the best first.
type Results struct {
	Hits      []Hit
	ByMeaning bool // they were ranked by meaning too
	More      bool // there are hits behind these
	rank.Remarks

	// SearchedFor is the spelling of the query that the hits are of, where words of it are in no row; else empty.
	SearchedFor string
	Explanation *rank.Explanation // if the query asks for it
}
