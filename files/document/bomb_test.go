//go:build !race

// With the race detector, which finds nothing in one goroutine, these tests take minutes.

package document_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"

	"github.com/loci-memory/loci/db/dbtest/scale"
	"github.com/loci-memory/loci/files/document"
)

// TestBombsEndWithinBounds measures all that is allocated: it bounds the work, not the memory in use at one time.
func TestBombsEndWithinBounds(t *testing.T) { //nolint:paralleltest // it measures what is allocated
	all := maps.Clone(bombs)
	if scale.Of(0, 1) == 1 {
		maps.Copy(all, largeBombs)
	}
	for name, bomb := range all {
		t.Run(name, func(t *testing.T) { //nolint:paralleltest // as above
			raw := bomb.raw(t)
			input := &reading{ReaderAt: bytes.NewReader(raw)}
			var got document.Text
			var err error
			bytes := allocated(func() { got, err = bomb.read(input, int64(len(raw))) })
			if !isUnreadable(err) || !strings.Contains(err.Error(), bomb.says) {
				t.Errorf("read %d bytes of text, %v; want an *UnreadableError with %q", len(got.Text), err, bomb.says)
			}
			t.Logf("%d bytes: %v; %d MiB allocated, %d bytes read", len(raw), err, bytes>>20, input.bytes)
			if bytes > 3<<30 {
				t.Errorf("%d MiB allocated for %d bytes", bytes>>20, len(raw))
			}
			if input.bytes > 3*int64(len(raw))+1<<20 {
				t.Errorf("%d bytes read of %d", input.bytes, len(raw))
			}
		})
	}
}
