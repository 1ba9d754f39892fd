package recall

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"

	"github.com/loci-memory/loci/db"
)

// What a tool returned is kept whole beside the log where it is longer than a result may be, or where the results of one message together
// are, the longest first; the log has its beginning.
const (
	MaxResultChars  = 50_000
	MaxResultsChars = 200_000 // of one message
	PreviewBytes    = 2_000
)

// blob is a text to be stored whole.
type blob struct {
	sha256 [sha256.Size]byte
	size   int
	zstd   bool
	bytes  []byte
	clip   string // id of its place in the log
	part   int
}

// clip puts aside what is too long of a message's results, in place.
func clip(parts []Part) (blobs []blob) {
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
		if chars[i] <= MaxResultChars && total <= MaxResultsChars {
			break
		}
		if chars[i] <= PreviewBytes { // nothing to win
			break
		}
		b := newBlob(parts[i].Text)
		b.part = i
		shown := preview(parts[i].Text)
		parts[i].Clip = &Clip{ID: b.clip, Chars: chars[i], Bytes: b.size, SHA256: hex.EncodeToString(b.sha256[:]), Shown: len(shown)}
		parts[i].Text = shown + clipNotice(parts[i].Clip)
		blobs = append(blobs, b)
		total -= chars[i] - PreviewBytes
	}
	slices.SortFunc(blobs, func(a, b blob) int { return cmp.Compare(a.part, b.part) })
	return blobs
}

// preview is the beginning of a text: whole lines, if it has any within PreviewBytes, else whole characters.
func preview(text string) string {
	head := text[:min(PreviewBytes, len(text))]
	if i := strings.LastIndexByte(head, '\n'); i > 0 {
		return head[:i+1]
	}
	for len(head) > 0 && !utf8.ValidString(head) {
		head = head[:len(head)-1]
	}
	return head
}

// clipNotice tells a model how to read on.
func clipNotice(c *Clip) string {
	return fmt.Sprintf("\n[The first %d of %d bytes are shown. To read on, call: expand(id=%q, offset=%d)]", c.Shown, c.Bytes, c.ID, c.Shown)
}

// compressFrom is the size from which compressing pays.
const compressFrom = 1 << 10

// Encoders and decoders are safe for all goroutines.
var (
	encoder, _ = zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	decoder, _ = zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(4*MaxPartBytes))
)

func newBlob(text string) blob {
	b := blob{sha256: sha256.Sum256([]byte(text)), size: len(text), clip: "clip-" + uuid.NewString(), bytes: []byte(text)}
	if len(text) >= compressFrom {
		if small := encoder.EncodeAll(b.bytes, nil); len(small) < len(b.bytes) {
			b.zstd, b.bytes = true, small
		}
	}
	return b
}

// whole reads the whole text of a clip, or of a message, of an agent.
func (s *Store) whole(ctx context.Context, org db.Org, agentID, id string) (string, error) {
	if from, to, ok := seqRange(id); ok {
		return s.stretch(ctx, org, agentID, from, to)
	}
	if strings.HasPrefix(id, "message-") {
		around, err := s.Around(ctx, org, agentID, id, 0, 0)
		if err != nil {
			return "", err
		}
		return around.Messages[around.At].Text(), nil
	}
	type row struct {
		ZSTD  bool   `db:"zstd"`
		Bytes []byte `db:"bytes"`
	}
	b, err := db.One[row](ctx, s.db, `
		SELECT b.zstd, b.bytes
		FROM clips k JOIN blobs b ON b.org = k.org AND b.sha256 = k.sha256
		JOIN conversations c ON c.key = k.conversation_key AND c.deleted_at IS NULL
		JOIN agents a ON a.key = k.agent_key
		WHERE k.org = $1 AND a.org = $1 AND a.id = $2 AND k.id = $3`, org, agentID, id)
	if errors.Is(err, db.ErrNotFound) {
		return "", db.NotFound("There is no text with the id %q to expand; ids look like clip-… and stand where a tool's result was cut", short(id))
	}
	if err != nil || !b.ZSTD {
		return string(b.Bytes), err
	}
	text, err := decoder.DecodeAll(b.Bytes, nil)
	if err != nil {
		return "", fmt.Errorf("expand %s: %w", id, err)
	}
	return string(text), nil
}
