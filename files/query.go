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
	Offset  int    // of the hits, the first that are left out
	Include string // glob or regular expression on folder/name; empty is all

	WordsOnly   bool    // the embeddings endpoint is not asked
	MeaningOnly bool    // but by words where the endpoint does not answer
	Weight      float64 // of meaning, as rank.Question has it
	AsWritten   bool    // no other spellings are searched
	Explain     bool    // hits and results say how they were ranked
}

// SearchMax is the most chunks one search returns.
const SearchMax = 50

// Hit is a chunk that a search found, or several that overlap. Lines are 1-based, inclusive.
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
	Near        float64 `db:"-"`            // what it gains by having the query's words near each other
	WordsRank   int     `db:"words_rank"`   // from 1; 0 if it shares no word with the query
	MeaningRank int     `db:"meaning_rank"` // from 1; 0 if it was not ranked by meaning

	Explanation *rank.HitExplanation `db:"-"` // if the query asks for it
}

// Pages returns the pages that the chunk is on.
func (h Hit) Pages() Pages {
	if h.FirstPage == nil || h.LastPage == nil {
		return Pages{}
	}
	return Pages{Word: pageWord(h.MediaType), First: *h.FirstPage, Last: *h.LastPage}
}

// Ranking says what a search was ranked by: words alone where no embedding model is configured, or it did not
// answer.
type Ranking string

// The rankings.
const (
	ByWords           Ranking = "words"
	ByWordsAndMeaning Ranking = "words and meaning"
)

// Results are the best chunks first.
type Results struct {
	Hits     []Hit
	Ranking  Ranking
	More     bool // there are hits behind these
	Attached bool // there are attached files, with or without text, whose names Include accepts
	rank.Remarks

	// SearchedFor is the spelling of the query that the hits are of, where words of it are in no row; else empty.
	SearchedFor string
	Explanation *rank.Explanation // if the query asks for it
}

func (q Query) check() error {
	if strings.TrimSpace(q.Text) == "" {
		return db.Invalid("Empty search query provided")
	}
	return rank.CheckQuery(q.Text)
}

// searchable is the text by which the hit is found.
func (h Hit) searchable() string { return h.FileName + "\n" + h.Heading + "\n" + h.Text }
