// Package archival stores passages in archives. Agents share archives and search them. The package owns the tables of
// archives, passages and attachments; it knows an agent only by its id.
//
// Each file uses only the files named before it:
//   - the basis: archival.go largearchives.go store.go embedding.go values.go
//   - archives and their passages: records.go archive.go validity.go attach.go insert.go passage.go insertbatch.go
//   - search: fields.go few.go search.go similar.go facets.go
//   - upkeep in the background, and vectors: backlog.go cleanup.go reembed.go vectors.go
//   - erasures, and archives in the file of an agent: erase.go ofuser.go portable.go
package archival

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/embed/rank"
)

// Archive is a set of passages. Agents attach it as a whole.
type Archive struct {
	Key         int64           `db:"key" json:"-"`
	ID          string          `db:"id" json:"id"`
	Name        string          `db:"name" json:"name"`
	Description *string         `db:"description" json:"description"`
	Metadata    json.RawMessage `db:"metadata" json:"metadata"`
	Embedding   *string         `db:"embedding" json:"-"` // the model that the archive's creator named
	UserID      *string         `db:"user_id" json:"user_id" doc:"The identity whose archive it is; null: nobody's."`
	CreatedAt   time.Time       `db:"created_at" json:"created_at"`
	UpdatedAt   time.Time       `db:"updated_at" json:"updated_at"`
	db.Makers

	Vectors *endpoint.Status `db:"embedding_status" json:"embedding_status"` // nil without an embeddings endpoint
}

// NewArchive describes an archive to create.
type NewArchive struct {
	Name        string // 1 to 255 characters
	Description *string
	Metadata    json.RawMessage
	Embedding   *string
	User        int64 // key of the identity whose archive it is; 0: nobody's
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
	Tags       []string        `db:"tags" json:"tags"` // without duplicates, in the order given
	Metadata   json.RawMessage `db:"metadata" json:"metadata"`
	HappenedAt time.Time       `db:"happened_at" json:"created_at"` // StoredAt if the draft has no HappenedAt
	StoredAt   time.Time       `db:"created_at" json:"stored_at"`
	UpdatedAt  time.Time       `db:"updated_at" json:"updated_at"`

	Language      *string `db:"language" json:"language" doc:"In ISO 639-1, by which words are found; null: unknown."`
	LanguageGiven bool    `db:"language_given" json:"language_given" doc:"Its writer chose the language."`

	db.Validity
	SupersededBy *string `db:"superseded_by" json:"superseded_by" doc:"The passage that took its place."`
	Ended        bool    `db:"ended" json:"ended" doc:"It holds no longer."` // when the passage was read

	Provenance *db.Provenance `db:"provenance" json:"provenance" doc:"Who stored the text; null if unknown."`
}

// Draft is a passage to insert.
type Draft struct {
	Text       string
	Tags       []string
	Metadata   json.RawMessage // nil is {}
	HappenedAt *time.Time      // nil is now
	Language   string          // its code in ISO 639-1; empty: the one that is found

	db.Validity        // nil ValidFrom: now if Supersedes is set
	Supersedes  string // id of a passage of the same archive; it ends where this one begins
}

// Inserted is a passage that an insert stored, or found because the archive had the text already. Its Key is 0.
type Inserted struct {
	Passage
	Duplicate bool `db:"duplicate"` // the archive had the text already; its passage did not change

	LeftTags   []string `db:"-"` // for a duplicate: tags of the draft that the stored passage lacks
	LeftFields []string `db:"-"` // for a duplicate: names of other fields with different values
}

// Left reports whether the draft has tags or fields that the stored passage with the same text lacks.
func (in Inserted) Left() bool { return len(in.LeftTags) > 0 || len(in.LeftFields) > 0 }

// PassageUpdate changes the fields that are not nil; a non-nil slice replaces the tags.
type PassageUpdate struct {
	Text     *string
	Tags     []string
	Metadata json.RawMessage
	Language *string // its code in ISO 639-1; empty: the one that is found

	ValidFrom, ValidUntil *db.Bound
	SupersededBy          *string // id of the passage of the archive that supersedes this one; empty: none
}

// SupersededError says that another passage has superseded the passage already. Current is the passage as it was read.
// errors.Is finds ErrConflict in it.
type SupersededError struct{ Current Passage }

func (e *SupersededError) Error() string {
	return fmt.Sprintf("%s was superseded by %s already; nothing was changed", e.Current.ID, *e.Current.SupersededBy)
}

// Unwrap returns ErrConflict.
func (e *SupersededError) Unwrap() error { return db.ErrConflict }

// Match says how many of a search's tags a passage must have: Any or All.
type Match string

// Any asks for at least one of the tags, All for every tag.
const (
	Any Match = "any"
	All Match = "all"
)

// Query asks for the passages about Text, or for the newest passages if Text is empty. An empty field does not narrow
// the search.
type Query struct {
	Text       string
	AgentID    string          // searches this agent's archives
	Users      db.UserScope    // whose archives
	ArchiveID  string          // searches only this archive, which must be within the reach
	Tags       []string        // an empty tag finds nothing
	Match      Match           // empty is Any
	Start, End *time.Time      // bounds of HappenedAt, both inclusive
	Held       db.Held         // which passages hold; the others are left out
	Filter     json.RawMessage // a filter by Fields; nil leaves all passages
	Zone       *time.Location  // of dates in Filter without an offset; nil is UTC
	Limit      int             // 1 to SearchMax; 0 is 1
	Offset     int             // how many hits to skip
	After      string          // id of a hit: only hits behind it are returned, and Offset counts from there
	ByTime     bool            // the newest of the hits first; After is valid while passages are added
	AsWritten  bool            // other spellings are not searched
	Explain    bool            // hits and results say how they were ranked

	WordsOnly   bool    // do not ask the embeddings endpoint
	MeaningOnly bool    // rank by meaning alone; by words if the endpoint does not answer
	Weight      float64 // weight of meaning, see rank.Question
}

// SearchMax is the most passages that a search returns.
const SearchMax = 100

// Hit is a passage that a search found.
type Hit struct {
	Passage
	Score       float64 `db:"score"`
	WordsRank   int     `db:"words_rank"`   // from 1; 0 if the passage shares no word with the query
	MeaningRank int     `db:"meaning_rank"` // from 1; 0 if the passage was not ranked by meaning

	Explanation *rank.HitExplanation `db:"-"` // set if Query.Explain
}

// Results are the passages that a search found, best first.
type Results struct {
	Hits      []Hit
	ByMeaning bool // the hits were ranked by meaning too
	More      bool // there are more hits behind these
	rank.Remarks

	// SearchedFor is the query in another spelling, if some words of it are in no passage and the hits are for that
	// spelling; else empty.
	SearchedFor string
	Explanation *rank.Explanation // set if Query.Explain
}
