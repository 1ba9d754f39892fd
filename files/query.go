package files

import (
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/rank"
)

// Query asks for the chunks of an agent's attached files that answer a question best.
type Query struct {
	Text    string
	Limit   int    // chunks, at most SearchMax
	Offset  int    // how many hits to skip
	Include string // glob or regular expression for folder/name; empty: all files
	Narrowing

	WordsOnly   bool    // do not ask the embeddings endpoint
	MeaningOnly bool    // rank by meaning alone; by words if the endpoint does not answer
	Weight      float64 // weight of meaning, see rank.Question
	AsWritten   bool    // other spellings are not searched
	Explain     bool    // hits and results say how they were ranked
}

// SearchMax is how many chunks one search returns at most.
const SearchMax = 50

// Hit is a chunk that a search found, or several chunks that overlap. Lines are from 1 and inclusive.
type Hit struct {
	ChunkKey    int64   `db:"key"`
	FileID      string  `db:"file_id"`
	FolderID    string  `db:"folder_id"`
	FileName    string  `db:"file_name"`
	Ordinal     int     `db:"ordinal"`
	FirstLine   int     `db:"first_line"`
	LastLine    int     `db:"last_line"`
	FirstPage   *int    `db:"first_page"`
	LastPage    *int    `db:"last_page"`
	MediaType   string  `db:"media_type"`
	Heading     string  `db:"heading"`
	Text        string  `db:"text"`
	Score       float64 `db:"score"`
	Near        float64 `db:"-"`            // gain from having the query's words near each other
	WordsRank   int     `db:"words_rank"`   // from 1; 0 if the chunk shares no word with the query
	MeaningRank int     `db:"meaning_rank"` // from 1; 0 if the chunk was not ranked by meaning

	Explanation *rank.HitExplanation `db:"-"` // set if Query.Explain

	ranked string  // text by which the best chunk was ranked
	scale  float64 // of a score in the ranking to Score
}

// Pages returns the pages on which the chunk is.
func (h Hit) Pages() Pages {
	if h.FirstPage == nil || h.LastPage == nil {
		return Pages{}
	}
	return Pages{Word: pageWord(h.MediaType), First: *h.FirstPage, Last: *h.LastPage}
}

// Ranking says how a search was ranked. It is by words alone if no embedding model is configured, or if the model did
// not answer.
type Ranking string

// The rankings.
const (
	ByWords           Ranking = "words"
	ByWordsAndMeaning Ranking = "words and meaning"
)

// Results are the chunks that a search found, best first.
type Results struct {
	Hits     []Hit
	Ranking  Ranking
	More     bool // there are more hits behind these
	Attached bool // the agent has attached files, with or without text, that Include accepts
	rank.Remarks

	// SearchedFor is the query in another spelling, if some words of it are in no chunk and the hits are for that
	// spelling; else empty.
	SearchedFor string
	Explanation *rank.Explanation // set if Query.Explain
}

func (q Query) check() error {
	if strings.TrimSpace(q.Text) == "" {
		return db.Invalid("Empty search query provided")
	}
	return rank.CheckQuery(q.Text)
}

// searchable returns the text by which the hit is found by words.
func (h Hit) searchable() string { return h.FileName + "\n" + h.Heading + "\n" + withDecoded(h.Text) }
