package recall

import (
	"context"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/rank"
)

// Query asks for the messages that Text is about, or for the newest if it is empty. Empty fields match all messages.
type Query struct {
	Text         string
	AgentID      string // empty is the whole organization
	Conversation string // an id, or DefaultConversation of AgentID
	Roles        []Role
	Start, End   *time.Time     // both inclusive
	Limit        int            // 1 to SearchMax; 0 is 1
	Offset       int            // of the hits, the first that are left out
	After        string         // the id of a hit; the hits behind it are returned, of which Offset are left out
	Asking       string         // the conversation whose model asks: an id; empty is Conversation or the default one
	Unseen       bool           // excludes what the model sees of the conversation (or of the default one) anyway
	WithReset    bool           // includes what Reset hid, in a search of an agent or of the organization
	Mode         Mode           // empty is ByBoth
	Weight       float64        // of meaning, as rank.Question has it
	AsWritten    bool           // no other spellings are searched
	Explain      bool           // hits and results say how they were ranked
	Zone         *time.Location // of the days and months that Text names; nil is UTC
	Now          time.Time      // when it is asked, for "yesterday"; zero is now
}

// periods returns the times that the query names. The error is that of ctx.
func (q Query) periods(ctx context.Context) ([]period, error) {
	if q.Now.IsZero() {
		q.Now = time.Now()
	}
	if q.Zone == nil {
		q.Zone = time.UTC
	}
	return periodsIn(ctx, q.Text, q.Now.In(q.Zone))
}

// Mode is what a search ranks by.
type Mode string

// The modes, as Letta names them. ByMeaning needs an embedding model; without one, ByBoth ranks by words.
const (
	ByBoth    Mode = "hybrid"
	ByWords   Mode = "fts"
	ByMeaning Mode = "vector"
)

// ErrNoEndpoint is an ErrInvalid: a search of mode ByMeaning where no embedding model is configured.
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
	Context     bool    `db:"-" json:"context"` // it shares nothing with the query, and is near messages that do

	Explanation *rank.HitExplanation `db:"-" json:"-"` // if the query asks for it
}

// Results are the messages that a search found, the best first.
type Results struct {
	Hits   []Hit
	Ranked Mode // what they were ranked by: ByWords where the endpoint did not answer; empty for the newest
	More   bool // there are hits behind these
	rank.Remarks

	// SearchedFor is the spelling of the query that the hits are of, where words of it are in no row; else empty.
	SearchedFor string
	Explanation *rank.Explanation // if the query asks for it
}
