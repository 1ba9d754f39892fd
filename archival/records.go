package archival

import (
	"encoding/json"
	"fmt"

	"github.com/loci-memory/loci/db/spool"
)

// recordsBytes is how many bytes records keep in memory; the rest goes to a file.
const recordsBytes = 1 << 20

// records are values that move to a temporary file when they are many.
type records struct{ spool.Spool }

// record is where a value stands in records.
type record struct {
	at   int64
	size int
}

func (r *records) add(v any) (record, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return record{}, err
	}
	offset := r.Size()
	if _, err = r.Write(text); err != nil {
		return record{}, fmt.Errorf("write passages to a temporary file: %w", err)
	}
	return record{offset, len(text)}, nil
}

func (r *records) read(at record, v any) error {
	text := make([]byte, at.size)
	if _, err := r.ReadAt(text, at.at); err != nil {
		return fmt.Errorf("read passages from a temporary file: %w", err)
	}
	return json.Unmarshal(text, v)
}
