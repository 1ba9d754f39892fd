package recall

import (
	"cmp"
	"context"
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

// A tool result longer than MaxResultChars is stored outside the log; the log keeps its beginning and a Clip. A result
// of a reading tool, whose length a policy bounds, may have MaxResultsChars. So may the results of parallel calls
// together, whether they are parts of a message or messages of their own, and however many appends they come in. Beyond
// that, the longest results of a message are stored outside the log, too.
const (
	MaxResultChars  = 50_000
	MaxResultsChars = 200_000
	PreviewBytes    = 2_000
)

// longResult is a tool result to be stored outside the log. It is stored once for each organization and hash.
type longResult struct {
	clip   string // the Clip's id
	part   int    // index of the result's part
	sha256 [sha256.Size]byte
	size   int // size of the text
	zstd   bool
	bytes  []byte // the text; compressed if zstd is true
}

// storeText is a statement that stores a text once for each organization and hash: $1 and $2. $3 is the text's size, $4
// whether it is compressed, and $5 its bytes.
var storeText = db.Counting("blobs", `
	INSERT INTO blobs (org, sha256, size_bytes, zstd, bytes) VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (org, sha256) DO UPDATE SET used_at = EXCLUDED.used_at`, "") + `SELECT count(*) FROM added`

// MostResultChars returns how many characters a result of a tool may have in the log.
func MostResultChars(tool string) int {
	if tool == "open_files" {
		return MaxResultsChars
	}
	return MaxResultChars
}

// moveLongResults cuts the entry's long results to their beginnings, and returns the whole results in the order of the
// parts. before is how many characters the results in the messages right before have. A whole result that had a Clip is
// moved again, with the Clip's id. The others get new ids.
func (e *entry) moveLongResults(before int) (moved []longResult) {
	parts, total := e.Content, before
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
		id, was := "clip-"+uuid.NewString(), e.clips[i]
		if was != nil {
			id = was.ID
		}
		most := MostResultChars(e.tools[parts[i].CallID])
		moves := chars[i] > most || total > MaxResultsChars || was != nil && was.Chars == chars[i]
		if !moves || chars[i] <= PreviewBytes {
			continue
		}
		long := newLongResult(id, parts[i].Text)
		long.part = i
		moved = append(moved, long)
		parts[i].clipTo(long, chars[i])
		total -= chars[i] - PreviewBytes
	}
	slices.SortFunc(moved, func(a, b longResult) int { return cmp.Compare(a.part, b.part) })
	return moved
}

// fitResults moves the long results of entries out of the log, in the order in which they follow what the log has.
func (a *appending) fitResults(ctx context.Context, fresh []*entry) error {
	for _, e := range fresh {
		switch {
		case e.Role != Tool || a.restores:
			a.results = new(0)
		case a.results == nil:
			chars, err := a.lastResultChars(ctx)
			if err != nil {
				return err
			}
			a.results = &chars
		}
		e.fit(*a.results)
		*a.results += resultChars(e.Content)
	}
	return nil
}

// lastResultChars returns the characters of the results in the log's last messages: those behind the last message that
// is no result.
func (a *appending) lastResultChars(ctx context.Context) (int, error) {
	return db.One[int](ctx, a.db, `
		SELECT coalesce(sum(char_length(part ->> 'text')), 0)::integer
		FROM messages m CROSS JOIN json_array_elements(m.content) AS part
		WHERE m.org = $1 AND m.conversation_key = $2 AND part ->> 'type' = 'tool_return' AND m.position > (
			SELECT coalesce(max(position), 0) FROM messages
			WHERE org = $1 AND conversation_key = $2 AND role <> 'tool')`, a.end.org, a.end.Key)
}

// resultChars returns the characters of the results in parts.
func resultChars(parts []Part) (chars int) {
	for _, p := range parts {
		if p.Type == ToolReturn {
			chars += utf8.RuneCountInString(p.Text)
		}
	}
	return chars
}

// clipTo cuts the part's text, a long result, to its beginning.
func (p *Part) clipTo(long longResult, chars int) {
	shown := preview(p.Text)
	p.Clip = &Clip{ID: long.clip, Chars: chars, Bytes: long.size, SHA256: hex.EncodeToString(long.sha256[:]),
		Shown: len(shown)}
	p.Text = shown
	p.Text = p.Preview(len(shown), 0, nil)
}

// Preview returns the beginning of a cut result, at most the given bytes and at most what the log holds. A note
// follows: it tells a model with these tools how to read on, at most limit bytes at a time; limit 0 names no limit.
func (p Part) Preview(bytes, limit int, has Toolset) string {
	bytes = min(max(bytes, 0), p.Clip.Shown, len(p.Text))
	return p.beginning(p.Text[:bytes], limit, has)
}

// Beginning returns the beginning of a cut result, text, with a note that tells a model with these tools how to read
// on.
func (p Part) Beginning(text string, has Toolset) string { return p.beginning(text, 0, has) }

func (p Part) beginning(text string, limit int, has Toolset) string {
	on := has.Hint("expand", " To read on, call: "+ExpandCall(strconv.Quote(p.Clip.ID), len(text), limit))
	return text + fmt.Sprintf("\n"+frame.FirstBytes, len(text), p.Clip.Bytes, on)
}

// ExpandCall returns the call that reads a text from offset on. It names the limit unless that is 0.
func ExpandCall(id string, offset, limit int) string {
	if limit == 0 {
		return fmt.Sprintf("expand(id=%s, offset=%d)", id, offset)
	}
	return fmt.Sprintf("expand(id=%s, offset=%d, limit=%d)", id, offset, limit)
}

// For returns messages as a model with these tools reads them: notes on cut results name no tool that the model lacks.
// The given messages do not change.
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

// preview returns the beginning of a text: whole lines if one ends within PreviewBytes, otherwise whole characters.
func preview(text string) string {
	head := db.Beginning(text, PreviewBytes)
	if i := strings.LastIndexByte(head, '\n'); i > 0 {
		return head[:i+1]
	}
	return head
}

// minCompressBytes is the smallest text that is compressed.
const minCompressBytes = 1 << 10

// All goroutines share one encoder and one decoder; both are safe for concurrent use. Only wrong options make errors.
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
