package archival

import (
	"encoding/json"
	"fmt"

	"github.com/loci-memory/loci/db/spool"
)

// recordsBytes is how much records hold in memory.
const recordsBytes = 1 << 20

// records are values that are kept outside memory if they are many.
type records struct{ spool.Spool }

// record is the place of a value in records.
type record struct {
	at   int64
	size int
}

func (r *records) add(v any) (record, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return record{}, err
	}
	at := r.Size()
	if _, err = r.Write(text); err != nil {
		return record{}, fmt.Errorf("write passages to a temporary file: %w", err)
	}
	return record{at, len(text)}, nil
}

func (r *records) read(at record, v any) error {
	text := make([]byte, at.size)
	if _, err := r.ReadAt(text, at.at); err != nil {
		return fmt.Errorf("read passages from a temporary file: %w", err)
	}
	return json.Unmarshal(text, v)
}
