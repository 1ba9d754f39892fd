package files

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/db/spool"
	"github.com/loci-memory/loci/files/document"
)

// Duplicates controls an upload whose name the folder already has.
type Duplicates string

// Suffix, the default, stores the file as name_(1).ext. Skip keeps the old file, Reject fails, and Replace deletes the
// old file once the text of the new one is ready.
const (
	Suffix  Duplicates = "suffix"
	Skip    Duplicates = "skip"
	Reject  Duplicates = "error"
	Replace Duplicates = "replace"
)

// Upload is a document to store.
type Upload struct {
	Name       string     // the client's name of the file
	Override   string     // the name to store, which may have slashes; empty to use Name
	MediaType  string     // the type that the client declares, a hint
	Duplicates Duplicates // empty is Suffix
	Body       io.Reader

	ID          string // file- and a UUID; empty to choose one
	KeepsClosed bool   // it does not open by itself in the agents that have its folder
}

// TooLargeError reports an upload larger than the server accepts.
type TooLargeError struct{ LimitBytes int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the file is larger than the limit of %d bytes; the operator can raise it (LOCI_MAX_UPLOAD_BYTES)",
		e.LimitBytes)
}

// UnsupportedError reports an upload of a format that Loci does not read. It is an ErrInvalid.
type UnsupportedError struct{ *document.UnsupportedError }

// Unwrap makes it an ErrInvalid.
func (e *UnsupportedError) Unwrap() error { return db.ErrInvalid }

// Upload stores a document in a folder and queues its parsing. It reads the whole body, up to the limit, and recognises
// its format before it writes the first row, all in one transaction. skipped is true where Duplicates is Skip and the
// folder has the name; the returned file is then the old one. Errors: ErrNotFound for the folder, ErrInvalid for a
// name, *TooLargeError, *UnsupportedError.
func (s *Store) Upload(ctx context.Context, org db.Org, folderID string, u Upload) (f File, skipped bool, err error) {
	folder, err := s.Folder(ctx, org, folderID)
	if err != nil {
		return File{}, false, err
	}
	name, err := u.storedName()
	if err != nil {
		return File{}, false, err
	}
	spooled, err := s.spool(u.Body)
	if err != nil {
		return File{}, false, err
	}
	defer spooled.Close()
	mediaType, err := document.Sniff(name, u.MediaType, spooled, spooled.Size())
	if unsupported, ok := errors.AsType[*document.UnsupportedError](err); ok {
		return File{}, false, &UnsupportedError{unsupported}
	}
	if err != nil {
		return File{}, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err = s.inTx(ctx, func(in *Store) error {
		if err := in.lockFolder(ctx, org, folder.Key, "KEY SHARE"); err != nil { // it may be deleted meanwhile
			return err
		}
		row := newFile{org: org, folder: folder, name: name, mediaType: mediaType, spooled: spooled,
			id: cmp.Or(u.ID, filePrefix+uuid.NewString()), keepsClosed: u.KeepsClosed,
			provenance: db.ProvenanceOf(ctx)}
		if row.turn, err = in.parseTurn(ctx, org, folder.Key, row.Size()); err != nil {
			return err
		}
		var ref fileRef
		if ref, skipped, err = in.insertNamed(ctx, row, u.Duplicates); err != nil {
			return err
		}
		if !skipped {
			if err := in.storeOriginal(ctx, row, ref.Key); err != nil {
				return err
			}
		}
		f, err = in.File(ctx, org, folderID, ref.ID, false) // after the commit, another upload may replace it
		return err
	})
	if err != nil {
		return File{}, false, err
	}
	return f, skipped, nil
}

func (u Upload) storedName() (string, error) {
	switch u.Duplicates {
	case "", Suffix, Skip, Reject, Replace:
	default:
		return "", db.Invalid("duplicate_handling is '%s'; it must be suffix, skip, error or replace", u.Duplicates)
	}
	if u.Override != "" {
		return CleanPath(u.Override)
	}
	return CleanName(u.Name)
}

// spooled is an upload on disk.
type spooled struct {
	spool.Spool
	sum []byte
}

// spool writes the body to a temporary file, and reads at most one byte more than the limit.
func (s *Store) spool(body io.Reader) (*spooled, error) {
	u, sum := &spooled{Spool: spool.Spool{Dir: s.o.TempDir}}, sha256.New()
	n, err := io.Copy(io.MultiWriter(u, sum), io.LimitReader(body, s.o.MaxUploadBytes+1))
	switch {
	case n > s.o.MaxUploadBytes:
		err = &TooLargeError{LimitBytes: s.o.MaxUploadBytes}
	case err != nil:
		err = fmt.Errorf("receive the upload: %w", err)
	default:
		u.sum = sum.Sum(nil)
		return u, nil
	}
	u.Close()
	return nil, err
}

// newFile is the row of an uploaded file.
type newFile struct {
	org       db.Org
	folder    Folder
	name      string
	mediaType string
	turn      queue.Turn // of its parsing
	*spooled

	id          string
	keepsClosed bool
	provenance  *db.Provenance
}

// insertNamed inserts the row under its name or, if that is taken, as Duplicates says. skipped reports that it inserted
// nothing, and returns the file that has the name.
func (s *Store) insertNamed(ctx context.Context, row newFile, d Duplicates) (ref fileRef, skipped bool, err error) {
	for range nameTries {
		ref, err = s.insert(ctx, row, row.name, nil)
		if !errors.Is(err, db.ErrNotFound) {
			return ref, false, err
		}
		switch d { // the name is taken
		case Reject:
			return ref, false, db.Invalid("File '%s' already exists in folder '%s'", row.name, row.folder.Name)
		case Skip:
			ref, err = s.lockNamed(ctx, row)
			skipped = err == nil
		case Replace:
			ref, err = s.insertReplacement(ctx, row)
		default:
			ref, err = s.insertSuffixed(ctx, row)
		}
		if !errors.Is(err, db.ErrNotFound) { // not found: the old file was deleted, or the next name was taken meanwhile
			return ref, skipped, err
		}
	}
	return fileRef{}, false, db.Conflict("other uploads take every name like '%s'; try again", row.name)
}

// nameTries is how often an upload tries to get a name before other uploads do.
const nameTries = 100

// insert inserts the row under a name. ErrNotFound if the folder has the name.
func (s *Store) insert(ctx context.Context, row newFile, name string, replaces *int64) (fileRef, error) {
	return db.One[fileRef](ctx, s.db, `
		INSERT INTO files (id, org, folder_key, name, original_name, replaces, media_type, size_bytes, sha256, turn,
		                   provenance)
		VALUES (@id, @org, @folder, @name, @original, @replaces, @media, @size, @sha256, @turn,
		        @provenance)
		ON CONFLICT (org, folder_key, name) WHERE replaces IS NULL DO NOTHING
		RETURNING key, id`,
		pgx.StrictNamedArgs{"id": row.id, "org": row.org, "folder": row.folder.Key, "name": name, "original": row.name,
			"replaces": replaces, "media": row.mediaType, "size": row.Size(), "sha256": row.sum,
			"turn": row.turn.Next(cost(row.Size())).Start, "provenance": row.provenance})
}

// lockNamed returns and locks the file that has the row's name.
func (s *Store) lockNamed(ctx context.Context, row newFile) (fileRef, error) {
	return db.One[fileRef](ctx, s.db, `
		SELECT key, id FROM files
		WHERE org = $1 AND folder_key = $2 AND name = $3 AND replaces IS NULL
		FOR UPDATE`, row.org, row.folder.Key, row.name)
}

// insertReplacement inserts the row as a replacement of the file with its name, which happens once its text is ready.
// It deletes earlier replacements that are not ready.
func (s *Store) insertReplacement(ctx context.Context, row newFile) (fileRef, error) {
	old, err := s.lockNamed(ctx, row)
	if err != nil {
		return fileRef{}, err
	}
	if err := s.exec(ctx, `DELETE FROM files WHERE org = $1 AND replaces = $2`, row.org, old.Key); err != nil {
		return fileRef{}, err
	}
	return s.insert(ctx, row, row.name, &old.Key)
}

// insertSuffixed inserts the row under the first free name_(n).ext up to n = 16, else under one that follows a name
// that is taken. It finds n by doubling and halving, so that it looks at few names, however many the folder has.
func (s *Store) insertSuffixed(ctx context.Context, row newFile) (fileRef, error) {
	var numbers []int // 1, 2, 3, … 16, 32, 64, …
	for n := 1; n <= 1<<30; n = max(n+1, n/16*32) {
		numbers = append(numbers, n)
	}
	free, err := s.firstFree(ctx, row, numbers)
	for taken := free / 2; err == nil && free > 16 && free-taken > 1; {
		middle, found := (taken+free)/2, 0
		if found, err = s.firstFree(ctx, row, []int{middle, free}); found == middle {
			free = middle
		} else {
			taken = middle
		}
	}
	if err != nil {
		return fileRef{}, err
	}
	return s.insert(ctx, row, Suffixed(row.name, free), nil)
}

// firstFree returns the first of some numbers whose name the folder does not have; the last if it has all.
func (s *Store) firstFree(ctx context.Context, row newFile, numbers []int) (int, error) {
	names := mapped(numbers, func(n int) string { return Suffixed(row.name, n) })
	taken, err := db.All[string](ctx, s.db, `
		SELECT name FROM files
		WHERE org = $1 AND folder_key = $2 AND replaces IS NULL AND name = ANY ($3)`, row.org, row.folder.Key, names)
	at := slices.IndexFunc(names, func(name string) bool { return !slices.Contains(taken, name) })
	if at < 0 {
		at = len(numbers) - 1
	}
	return numbers[at], err
}

// storeOriginal stores the original in pieces, and queues the parsing of the file.
func (s *Store) storeOriginal(ctx context.Context, row newFile, fileKey int64) error {
	size, original := row.Size(), row.Reader() // the transaction may run again
	piece, ordinal, stored := make([]byte, min(pieceBytes, max(size, 1))), 0, int64(0)
	next := func() ([]any, error) {
		n, err := io.ReadFull(original, piece)
		if err == io.EOF {
			return nil, nil
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return nil, err
		}
		ordinal++
		stored += int64(n)
		return []any{fileKey, ordinal - 1, row.org, piece[:n]}, nil
	}
	store := s.copyPieces
	if size <= pieceBytes {
		store = s.insertPiece
	}
	if err := store(ctx, next); err != nil {
		return fmt.Errorf("store the original: %w", err)
	}
	if stored != size {
		return fmt.Errorf("store the original: %d of %d bytes are there", stored, size)
	}
	return s.enqueue(ctx, ParseArgs{Org: row.org, FileKey: fileKey, Generation: 1, size: size,
		Start: queue.At(row.turn.Start), KeepsClosed: row.keepsClosed})
}

// copyPieces stores the pieces of an original: their values of file_key, ordinal, org and bytes.
func (s *Store) copyPieces(ctx context.Context, next func() ([]any, error)) error {
	_, err := s.db.CopyFrom(ctx, pgx.Identifier{"file_originals"}, []string{"file_key", "ordinal", "org", "bytes"},
		pgx.CopyFromFunc(next))
	return err
}

// insertPiece is copyPieces for an original of at most one piece, in a third of the round trips.
func (s *Store) insertPiece(ctx context.Context, next func() ([]any, error)) error {
	piece, err := next()
	if err != nil || piece == nil {
		return err
	}
	return s.exec(ctx, `INSERT INTO file_originals (file_key, ordinal, org, bytes) VALUES ($1, $2, $3, $4)`, piece...)
}

// IsMediaType reports whether a stored media type is one that Loci knows, and not as an upload declared it.
func IsMediaType(mediaType string) bool { return document.IsKnown(mediaType) }
