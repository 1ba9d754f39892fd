package recall

import (
	"context"
	"encoding/json"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/rank"
)

// Query asks for messages about Text, or for the newest messages if Text is empty. An empty field does not narrow the
// search.
type Query struct {
	Text         string
	AgentID      string // empty: the whole organization
	Conversation string // an id, or DefaultConversation of AgentID
	Users        db.UserScope
	Roles        []Role
	Start, End   *time.Time      // both inclusive
	Filter       json.RawMessage // a filter by Fields; nil leaves all messages. Dates without an offset are in Zone
	Limit        int             // 1 to SearchMax; 0 is 1
	Offset       int             // how many of the best hits are left out
	After        string          // id of a hit: only hits behind it are returned, and Offset counts from there
	Asking       string          // id of the conversation in which the model asks; empty: Conversation or the default one
	Unseen       bool            // excludes what the model sees of that conversation anyway
	CalledAt     int             // position in that conversation of the call that asks; 0 if no log has it
	OnlyMatches  bool            // leaves out messages that share nothing with the query, but stand near others that do
	WithReset    bool            // includes what Reset hid, in a search of an agent or the organization
	Mode         Mode            // empty is ByBoth
	Weight       float64         // of meaning, as in rank.Question
	ByTime       bool            // the newest of the hits first; After is valid while messages are added
	AsWritten    bool            // search no other spellings
	Explain      bool            // hits and results say how they were ranked
	Zone         *time.Location  // time zone for days and months in Text; nil is UTC
	Now          time.Time       // the time of asking, for words like "yesterday"; zero is now
}

// periods returns the times that the query names. It returns ctx's error if ctx ends first.
func (q Query) periods(ctx context.Context) ([]period, error) {
	if q.Now.IsZero() {
		q.Now = time.Now()
	}
	if q.Zone == nil {
		q.Zone = time.UTC
	}
	return periodsIn(ctx, q.Text, q.Now.In(q.Zone))
}

// Mode is the kind of a search: by words, by meaning, or by both.
type Mode string

// The modes, as Letta names them. ByMeaning needs an embedding model; without one, ByBoth ranks by words.
const (
	ByBoth    Mode = "hybrid"
	ByWords   Mode = "fts"
	ByMeaning Mode = "vector"
)

// ErrNoEndpoint is an ErrInvalid: the mode is ByMeaning, and no embedding model is configured.
var ErrNoEndpoint = db.Invalid("search_mode is %q, and there is no embedding model to rank by meaning: "+
	"see LOCI_EMBEDDING, or search with %q or %q", ByMeaning, ByWords, ByBoth)

// SearchMax is the most messages that a search returns.
const SearchMax = 100

// Hit is a message that a search found.
type Hit struct {
	Message
	Score       float64 `db:"score" json:"score"`
	WordsRank   int     `db:"words_rank" json:"words_rank"`     // from 1; 0 if it shares no word with the query
	MeaningRank int     `db:"meaning_rank" json:"meaning_rank"` // from 1; 0 if it was not ranked by meaning
	Snippet     string  `db:"-" json:"snippet"`
	Context     bool    `db:"-" json:"context"` // it shares nothing with the query, but stands near messages that do

	Explanation *rank.HitExplanation `db:"-" json:"-"` // nil unless the query asks for it
}

// Results are the messages that a search found, the best first.
type Results struct {
	Hits   []Hit
	Ranked Mode // how they were ranked: ByWords if the endpoint did not answer; empty for the newest
	More   bool // there are more hits
	rank.Remarks

	// SearchedFor is the spelling that found the hits, if some words of the query are in no row; otherwise empty.
	SearchedFor string
	Explanation *rank.Explanation // nil unless the query asks for it
}
