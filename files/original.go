package files

import (
	"context"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
)

// original reads the bytes of a file as they came, piece by piece. It holds a connection until the last is read, or
// Close.
type original struct {
	rows pgx.Rows
	rest []byte // of the row that is read
}

func (s *Store) original(ctx context.Context, src source) (*original, error) {
	rows, err := s.db.Query(ctx, `SELECT bytes FROM file_originals WHERE org = $1 AND file_key = $2 ORDER BY ordinal`, src.Org, src.Key)
	if err != nil {
		return nil, fmt.Errorf("read the original: %w", err)
	}
	return &original{rows: rows}, nil
}

// Read implements io.Reader.
func (o *original) Read(p []byte) (int, error) {
	for len(o.rest) == 0 {
		if !o.rows.Next() {
			return 0, o.end()
		}
		o.rest = o.rows.RawValues()[0]
	}
	n := copy(p, o.rest)
	o.rest = o.rest[n:]
	return n, nil
}

func (o *original) end() error {
	if err := o.rows.Err(); err != nil {
		return fmt.Errorf("read the original: %w", err)
	}
	return io.EOF
}

// Close lets go of the connection.
func (o *original) Close() { o.rows.Close() }
