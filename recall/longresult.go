package recall

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
)

// A tool result longer than MaxResultChars is stored whole outside the log, which keeps its beginning and a Clip. So
// are the longest results of a message whose results together are longer than MaxResultsChars.
const (
	MaxResultChars  = 50_000
	MaxResultsChars = 200_000
	PreviewBytes    = 2_000
)

// longResult is a tool result to be stored outside the log, once per organization and hash.
type longResult struct {
	clip   string // id of the Clip
	part   int    // index of its part
	sha256 [sha256.Size]byte
	size   int // bytes of the text
	zstd   bool
	bytes  []byte // the text, compressed if zstd
}

// moveLongResults replaces the long results in parts with their beginnings, and returns the whole results in the order
// of the parts. ids are those that their Clips are to have, by the index of the part; others get new ones.
func moveLongResults(parts []Part, ids map[int]string) (moved []longResult) {
	total := 0
	var results []int
	chars := make([]int, len(parts))
	for i, p := range parts {
		if p.Type == ToolReturn {
			chars[i] = utf8.RuneCountInString(p.Text)
			total += chars[i]
			results = append(results, i)
		}
	}
	slices.SortStableFunc(results, func(a, b int) int { return cmp.Compare(chars[b], chars[a]) })
	for _, i := range results {
		if chars[i] <= MaxResultChars && total <= MaxResultsChars || chars[i] <= PreviewBytes {
			break
		}
		long := newLongResult(cmp.Or(ids[i], "clip-"+uuid.NewString()), parts[i].Text)
		long.part = i
		moved = append(moved, long)
		parts[i].clipTo(long, chars[i])
		total -= chars[i] - PreviewBytes
	}
	slices.SortFunc(moved, func(a, b longResult) int { return cmp.Compare(a.part, b.part) })
	return moved
}

// clipTo replaces a long result with its beginning.
func (p *Part) clipTo(long longResult, chars int) {
	shown := preview(p.Text)
	p.Clip = &Clip{ID: long.clip, Chars: chars, Bytes: long.size, SHA256: hex.EncodeToString(long.sha256[:]),
		Shown: len(shown)}
	p.Text = shown
	p.Text = p.Preview(len(shown), 0, nil)
}

// Preview returns the first bytes of a result of which the log holds the beginning, at most those that it holds, and a
// note on how a model with the tools has reads on, at most limit bytes at a time; 0 names no limit.
func (p Part) Preview(bytes, limit int, has Toolset) string {
	bytes = min(max(bytes, 0), p.Clip.Shown, len(p.Text))
	on := has.Hint("expand", " To read on, call: "+ExpandCall(strconv.Quote(p.Clip.ID), bytes, limit))
	return p.Text[:bytes] + fmt.Sprintf("\n"+frame.FirstBytes, bytes, p.Clip.Bytes, on)
}

// ExpandCall returns the call that reads a text on, at most limit bytes at a time. Without a limit it names none.
func ExpandCall(id string, offset, limit int) string {
	if limit == 0 {
		return fmt.Sprintf("expand(id=%s, offset=%d)", id, offset)
	}
	return fmt.Sprintf("expand(id=%s, offset=%d, limit=%d)", id, offset, limit)
}

// For returns messages as a model with these tools reads them: notes on cut results name no other tool. It does not
// change the messages given.
func (has Toolset) For(messages []Message) []Message {
	if has == nil || has("expand") {
		return messages
	}
	shown := slices.Clone(messages)
	for i, m := range shown {
		shown[i].Content = slices.Clone(m.Content)
		for j, p := range m.Content {
			if p.Clip != nil {
				shown[i].Content[j].Text = p.Preview(p.Clip.Shown, 0, has)
			}
		}
	}
	return shown
}

// preview returns the beginning of a text: whole lines if one ends within PreviewBytes, else whole characters.
func preview(text string) string {
	head := db.Beginning(text, PreviewBytes)
	if i := strings.LastIndexByte(head, '\n'); i > 0 {
		return head[:i+1]
	}
	return head
}

// minCompressBytes is the size from which texts are compressed.
const minCompressBytes = 1 << 10

// All goroutines share one encoder and one decoder, which are safe for concurrent use. Only wrong options make errors.
var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(4*MaxPartBytes))
)

func newLongResult(id, text string) longResult {
	long := longResult{clip: id, sha256: sha256.Sum256([]byte(text)), size: len(text),
		bytes: []byte(text)}
	if long.size >= minCompressBytes {
		if small := encoder.EncodeAll(long.bytes, nil); len(small) < long.size {
			long.zstd, long.bytes = true, small
		}
	}
	return long
}
