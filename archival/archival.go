// Package archival keeps what is to be remembered for good: passages in archives, which agents share, found by what they say. It owns
// archives and passages and what is attached to which agent; it knows an agent only by its id.
package archival

import (
	"encoding/json"
	"time"

	"github.com/loci-memory/loci/embed"
)

// Archive is a set of passages that is attached to agents as one.
type Archive struct {
	Key         int64           `db:"key" json:"-"`
	ID          string          `db:"id" json:"id"`
	Name        string          `db:"name" json:"name"`
	Description *string         `db:"description" json:"description"`
	Metadata    json.RawMessage `db:"metadata" json:"metadata"`
	Embedding   *string         `db:"embedding" json:"-"` // the model that the archive's maker named
	CreatedAt   time.Time       `db:"created_at" json:"created_at"`
	UpdatedAt   time.Time       `db:"updated_at" json:"updated_at"`

	Vectors *embed.Status `db:"embedding_status" json:"embedding_status"` // nil if there was no embeddings endpoint yet
}

// NewArchive is what an archive is made from.
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
	HappenedAt time.Time       `db:"happened_at" json:"created_at"` // when what it says was so; when it was stored, if nobody said
	StoredAt   time.Time       `db:"created_at" json:"stored_at"`
	UpdatedAt  time.Time       `db:"updated_at" json:"updated_at"`
}

// Draft is a passage to insert. HappenedAt nil is now.
type Draft struct {
	Text       string
	Tags       []string
	Metadata   json.RawMessage
	HappenedAt *time.Time
}

// Inserted is a passage that was inserted, or was there already.
type Inserted struct {
	Passage
	Duplicate bool // its text was in the archive already: it is as it was
}

// PassageUpdate changes the fields that are not nil; a non-nil slice replaces the tags.
type PassageUpdate struct {
	Text     *string
	Tags     []string
	Metadata json.RawMessage
}

// Match says how the tags of a search must be among a passage's.
type Match string

// Any tag is enough, or all must be there.
const (
	Any Match = "any"
	All Match = "all"
)

// Query asks for passages: those that Text is about, or the newest where it is empty. Empty fields do not narrow it.
type Query struct {
	Text       string
	AgentID    string // in the archives of an agent
	ArchiveID  string // in one archive, where no agent is given
	Tags       []string
	Match      Match      // empty is Any
	Start, End *time.Time // of HappenedAt; both belong to it
	Limit      int        // 1 to SearchMax; 0 is 1
}

// SearchMax is the most passages that a search returns.
const SearchMax = 100

// Hit is a passage that a search found.
type Hit struct {
	Passage
	Score       float64 `db:"score"`
	WordsRank   int     `db:"words_rank"`   // from 1; 0 if it shares no word with the query
	MeaningRank int     `db:"meaning_rank"` // from 1; 0 if it was not ranked by meaning
}

// Results are what a search found, the best first.
type Results struct {
	Hits      []Hit
	ByMeaning bool   // they were ranked by meaning too
	Note      string // a sentence on what the ranking lacks, empty if nothing
}
