package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/document"
)

// ErasedFile says what was erased in a file.
type ErasedFile struct {
	ID        string
	Found     int  // number of occurrences
	Unread    bool // the file has no text, and its bytes cannot be searched
	Waiting   bool // the file is not parsed yet and must be looked at again, because its bytes do not show its text
	Converted bool // the original is now the text read from it: nothing can be erased in its own format
}

// EraseFrom erases texts in a file: in its bytes and everything made from them. A file with bytes that are text keeps
// its format; any other file becomes plain text. The file is then parsed again, and searches find it after that. erase
// returns a text without the erased parts, and their number. With dry, EraseFrom only counts.
func (s *Store) EraseFrom(ctx context.Context, org db.Org, key int64, dry bool, erase func(string) (string, int)) (
	erased ErasedFile, err error) {
	type row struct {
		FileID     string  `db:"file_id"`
		FolderID   *string `db:"folder_id"`
		Generation int     `db:"generation"`
		Waiting    bool    `db:"waiting"`
		MediaType  string  `db:"media_type"`
	}
	f, err := db.One[row](ctx, s.db, `
		SELECT f.id AS file_id, d.id AS folder_id, f.generation, f.media_type,
		       f.generation < f.wanted_generation AND f.error IS NULL AND NOT f.cancelled AS waiting
		FROM files f LEFT JOIN folders d ON d.org = f.org AND d.key = f.folder_key AND d.deleted_at IS NULL
		WHERE f.org = $1 AND f.key = $2`, org, key)
	if errors.Is(err, db.ErrNotFound) {
		return erased, nil
	}
	if err != nil {
		return erased, err
	}
	e := erasing{key: key, id: f.FileID, generation: f.Generation, waiting: f.Waiting, erase: erase,
		format: document.Input{MediaType: f.MediaType}}
	if erased, err = e.read(ctx, s, org); err != nil || erased.Found == 0 || dry || erased.Waiting {
		return erased, err
	}
	if f.FolderID == nil { // its folder was deleted, and its rows will be
		return erased, s.deleteFiles(ctx, org, `r.key = $2`, key)
	}
	_, err = s.updateLocked(ctx, org, *f.FolderID, f.FileID, func(tx *Store, _ File, w workState) error {
		e.generation = w.Generation
		// It may have another text by now.
		if erased, err = e.read(ctx, tx, org); err != nil || erased.Found == 0 || erased.Waiting {
			return err
		}
		return e.store(ctx, tx, org)
	})
	return erased, ifNotFound(err, nil)
}

// erasing is a file in which texts are being erased.
type erasing struct {
	key        int64
	id         string
	generation int
	waiting    bool // the file waits to be parsed
	format     document.Input
	erase      func(string) (string, int)

	after  []byte // the new bytes
	asText bool   // the new bytes are not in the file's format
}

// read reads a file and computes its new bytes.
func (e *erasing) read(ctx context.Context, s *Store, org db.Org) (erased ErasedFile, err error) {
	pieces, err := db.All[[]byte](ctx, s.db, `
		SELECT bytes FROM file_originals WHERE org = $1 AND file_key = $2 ORDER BY ordinal`, org, e.key)
	if err != nil {
		return erased, err
	}
	segments, err := db.All[string](ctx, s.db, `
		SELECT text FROM file_segments WHERE org = $1 AND file_key = $2 AND generation = $3 ORDER BY ordinal`,
		org, e.key, e.generation)
	if err != nil {
		return erased, err
	}
	erased.ID = e.id
	original := bytes.Join(pieces, nil)
	text, inText := e.erase(strings.Join(segments, ""))
	e.after, e.asText = []byte(text), true
	if utf8.Valid(original) {
		raw, n := e.erase(string(original))
		if erased.Found = max(n, inText); n > 0 || inText == 0 {
			e.after, e.asText = []byte(raw), false
		}
		erased.Converted = e.asText
		erased.Waiting = e.waiting && n == 0 && (e.format.IsHTML() || e.format.IsComplex())
		return erased, nil
	}
	erased.Found = max(inText, inPacked(original, e.erase))
	erased.Waiting = e.waiting
	erased.Unread = erased.Found == 0 && len(segments) == 0
	erased.Converted = erased.Found > 0 && !erased.Waiting
	return erased, nil
}

// store replaces the bytes of a file, deletes everything made from them, and queues the file.
func (e *erasing) store(ctx context.Context, s *Store, org db.Org) error {
	sum := sha256.Sum256(e.after)
	if err := s.exec(ctx, `
		DELETE FROM gram_blocks b USING gram_units u
		WHERE b.org = $1 AND u.org = $1 AND u.block_key = b.key AND u.file_key = $2`, org, e.key); err != nil {
		return err
	}
	if err := s.exec(ctx, `
		UPDATE files f SET gram_generation = 0
		WHERE f.org = $1 AND f.gram_generation > 0 AND f.folder_key = (
			SELECT folder_key FROM files WHERE org = $1 AND key = $2)
		  AND NOT EXISTS (SELECT FROM gram_units u WHERE u.org = $1 AND u.file_key = f.key)`, org, e.key); err != nil {
		return err
	}
	chunks, err := db.All[int64](ctx, s.db, `SELECT key FROM chunks WHERE org = $1 AND file_key = $2`, org, e.key)
	if err != nil {
		return err
	}
	if err := s.search.Words.Note(ctx, s.db, org, chunks...); err != nil {
		return err
	}
	for _, table := range []string{"file_originals", "file_segments", "chunks", "embed_batches", "embed_refusals",
		"read_pages"} {
		if err := s.exec(ctx, `DELETE FROM `+table+` WHERE org = $1 AND file_key = $2`, org, e.key); err != nil {
			return err
		}
	}
	for i, rest := 0, e.after; i == 0 || len(rest) > 0; i++ {
		piece := rest[:min(len(rest), pieceBytes)]
		rest = rest[len(piece):]
		if err := s.exec(ctx, `
			INSERT INTO file_originals (file_key, ordinal, org, bytes) VALUES ($2, $3, $1, $4)`,
			org, e.key, i, piece); err != nil {
			return err
		}
	}
	row := db.Rows{Table: "files", Where: `r.key = $2`, Args: []any{org, e.key}}
	if err := db.Resize(ctx, s.db.(pgx.Tx), row, func() error {
		return s.exec(ctx, `
		UPDATE files
		SET sha256 = $3, size_bytes = $4, generation = 0, gram_generation = 0, chars = 0, lines = 0, chunks = 0, pages = NULL,
		    omitted = NULL, read_by = NULL, pages_read = NULL, pages_found = NULL, first_chunk = NULL, last_chunk = NULL,
		    charset = NULL, charset_sure = NULL,
		    encoding = CASE WHEN $5 THEN NULL ELSE encoding END,
		    media_type = CASE WHEN $5 THEN 'text/plain' ELSE media_type END
		WHERE org = $1 AND key = $2`, org, e.key, sum[:], len(e.after), e.asText)
	}); err != nil {
		return err
	}
	return s.queueParsing(ctx, org, []int64{e.key})
}
