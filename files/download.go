package files

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/loci-memory/loci/db"
)

// Download reads the original of a file, piece by piece. ErrNotFound if the file is deleted meanwhile.
type Download struct {
	Name      string    `db:"name"`
	MediaType string    `db:"media_type"`
	SizeBytes int64     `db:"size_bytes"`
	SHA256    []byte    `db:"sha256"`
	CreatedAt time.Time `db:"created_at"`
	Key       int64     `db:"key"`

	ctx   context.Context //nolint:containedctx // io.Reader takes none
	store *Store
	org   db.Org
	at    int64  // offset of the next byte
	piece []byte // the piece that was last read
	first int64  // offset of the first byte of piece
}

// pieceTimeout is how long to wait for one piece of an original.
const pieceTimeout = 30 * time.Second

// Download returns the original of a file. It can be read until ctx ends. ErrNotFound if the folder has no such file.
func (s *Store) Download(ctx context.Context, org db.Org, folderID, fileID string) (*Download, error) {
	ask, cancel := context.WithTimeout(ctx, pieceTimeout)
	defer cancel()
	o, err := db.One[Download](ask, s.db, `
		SELECT f.key, f.name, f.media_type, f.size_bytes, f.sha256, f.created_at
		FROM files f JOIN folders d ON d.org = f.org AND d.key = f.folder_key AND d.deleted_at IS NULL
		WHERE f.org = $1 AND d.id = $2 AND f.id = $3`, org, folderID, fileID)
	o.ctx, o.store, o.org = ctx, s, org
	return &o, ifNotFound(err, errNoFile)
}

// Read implements io.Reader.
func (d *Download) Read(into []byte) (int, error) {
	if d.at >= d.SizeBytes {
		return 0, io.EOF
	}
	if d.at < d.first || d.at >= d.first+int64(len(d.piece)) {
		if err := d.readPiece(d.at / pieceBytes); err != nil {
			return 0, err
		}
	}
	n := copy(into, d.piece[d.at-d.first:])
	d.at += int64(n)
	return n, nil
}

func (d *Download) readPiece(ordinal int64) error {
	ctx, cancel := context.WithTimeout(d.ctx, pieceTimeout)
	defer cancel()
	piece, err := db.One[[]byte](ctx, d.store.db, `
		SELECT bytes FROM file_originals WHERE org = $1 AND file_key = $2 AND ordinal = $3`, d.org, d.Key, ordinal)
	if err != nil {
		return err
	}
	d.piece, d.first = piece, ordinal*pieceBytes
	if d.at >= d.first+int64(len(piece)) {
		return io.ErrUnexpectedEOF
	}
	return nil
}

// Seek implements io.Seeker.
func (d *Download) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += d.at
	case io.SeekEnd:
		offset += d.SizeBytes
	}
	if offset < 0 {
		return 0, errors.New("seek before the beginning of an original")
	}
	d.at = offset
	return offset, nil
}

const (
	pieceBytes   = 1 << 20         // of an original, in one row
	storeTimeout = 2 * time.Minute // for the transaction that stores an upload
)
