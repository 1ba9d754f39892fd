package files

import (
	"encoding/json"
	"strings"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/chunker"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/grep"
)

// source is a file to parse.
type source struct {
	Key           int64  `db:"key"`
	ID            string `db:"id"`
	Org           db.Org `db:"org"`
	FolderKey     int64  `db:"folder_key"`
	Name          string `db:"name"`
	MediaType     string `db:"media_type"`
	SizeBytes     int64  `db:"size_bytes"`
	ChunkTokens   int    `db:"chunk_tokens"`
	OverlapTokens int    `db:"overlap_tokens"`
	Encoding      string `db:"encoding"` // that the uploader chose; empty: none
	Language      string `db:"language"` // likewise
	Previous      int    `db:"previous"` // the previous generation; 0 if the file has no text
	Replaces      *int64 `db:"replaces"` // key of the file that this one replaces; nil: none
}

// parsed is the text of a file, and its chunks.
type parsed struct {
	document.Text
	chunks []chunker.Chunk
	lex    []lexicon.Lex // word weights of the chunks, for a small text
}

// smallBytes is the size up to which texts are committed together.
const smallBytes = 256 << 10

// isSmall reports whether a text may be committed with others.
func (p parsed) isSmall() bool { return len(p.Text.Text) <= smallBytes && p.Pages == nil }

// ingested is a file with the text that a job read from it.
type ingested struct {
	job ParseArgs
	src source
	parsed
}

// folderOf names a folder.
type folderOf struct {
	org db.Org
	key int64
}

// startedFile is a job that begins. src is nil if its generation is not wanted any more.
type startedFile struct {
	job      ParseArgs
	src      *source
	original []byte // of a small file
}

// languageChunks is how many chunks of a file, spread evenly over it, say in which language it is.
const languageChunks = 9

// language returns the code of the language in which most of the text is; "" if it has no letters.
func (f *ingested) language() (most string) {
	counts := map[string]int{}
	for i := 0; i < len(f.chunks); i += max(1, len(f.chunks)/languageChunks) {
		code := lexicon.CodeOf(f.chunks[i].Text)
		if counts[code]++; code != "" && counts[code] > counts[most] {
			most = code
		}
	}
	return most
}

// sure returns how likely the text's encoding is right; nil if its format is not plain text.
func (f *ingested) sure() *float64 {
	if f.Charset == "" {
		return nil
	}
	return new(min(1, max(0, f.Sure)))
}

// omitted returns what the text omits, as a JSON list.
func (f *ingested) omitted() string {
	raw, _ := json.Marshal(append([]document.Omission{}, f.Omitted...)) // strings and numbers always marshal
	return string(raw)
}

// readBy returns what programs read of the text, as a JSON list; nil if that is nothing.
func (f *ingested) readBy() *string {
	if len(f.ReadBy) == 0 {
		return nil
	}
	raw, _ := json.Marshal(f.ReadBy) // strings always marshal
	return new(string(raw))
}

// segments yields the rows of a file's text.
func (f *ingested) segments(yield func([]any) bool) {
	for g := range grep.Segments(f.Text.Text) {
		if !yield([]any{f.src.Key, f.job.Generation, g.Ordinal, f.src.Org, g.FirstLine, g.Lines, g.Continues, g.Text}) {
			return
		}
	}
}

// chunkRows yields the rows of a file's chunks.
func (f *ingested) chunkRows(yield func([]any) bool) {
	paging := Paging{Starts: f.Pages}
	for i, c := range f.chunks {
		lex := lexicon.Lex{}
		if f.lex != nil {
			lex = f.lex[i]
		} else {
			lex = lexicon.DocumentIn(searchable(f.src.Name, c), f.src.Language)
		}
		id := uuid.Must(uuid.NewV7()) // ascending, so that their index grows at its end
		if !yield([]any{id, f.src.Key, f.job.Generation, i, f.src.Org, f.src.FolderKey, c.FirstLine, c.LastLine, c.StartByte,
			c.OverlapBytes, strings.ToValidUTF8(c.Heading, ""), c.Text, lex.Vector, lex.Terms,
			paging.stored(c.FirstLine), paging.stored(c.LastLine)}) {
			return
		}
	}
}

// searchable returns the text by which a chunk is found by words. It includes the file's name and the headings above
// the chunk.
func searchable(name string, c chunker.Chunk) string {
	return name + "\n" + c.Heading + "\n" + withDecoded(c.Text)
}
