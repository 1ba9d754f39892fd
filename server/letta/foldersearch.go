package letta

import (
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/files"
)

// FoundChunk is a part of a file that a search found.
type FoundChunk struct {
	FileID      string      `json:"file_id"`
	FileName    string      `json:"file_name" doc:"With its folder."`
	Text        string      `json:"text"`
	Place       files.Place `json:"metadata" doc:"Where the text stands in the file."`
	Score       float64     `json:"score" doc:"How well it fits, from 0 to 1; comparable among searches."`
	WordsRank   int         `json:"fts_rank" doc:"From 1; 0 if it shares no word with the query."`
	MeaningRank int         `json:"vector_rank" doc:"From 1; 0 if it was not ranked by meaning."`

	SearchedFor string               `json:"searched_for,omitempty"`
	Explanation *rank.HitExplanation `json:"explain,omitempty" doc:"How it was ranked, with explain=true."`
}

// FoundChunkOf returns a hit in a file, in the API's shape.
func FoundChunkOf(h files.Hit) FoundChunk {
	return FoundChunk{FileID: h.FileID, FileName: h.FileName, Text: h.Text, Score: h.Score, WordsRank: h.WordsRank,
		MeaningRank: h.MeaningRank, Explanation: h.Explanation,
		Place: files.Place{FirstLine: h.FirstLine, LastLine: h.LastLine, FirstPage: h.FirstPage, LastPage: h.LastPage,
			Heading: h.Heading}}
}
