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
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/files/document"
)

// Duplicates says what to do if the folder already has a file with the upload's name.
type Duplicates string

// Suffix, the default, stores the file as name_(1).ext. Skip keeps the old file. Reject fails. Replace deletes the old
// file once the text of the new one is ready.
const (
	Suffix  Duplicates = "suffix"
	Skip    Duplicates = "skip"
	Reject  Duplicates = "error"
	Replace Duplicates = "replace"
)

// Upload is a document to store.
type Upload struct {
	Name       string     // the client's name of the file
	Override   string     // the name to store, which may have slashes; empty: Name
	MediaType  string     // the type that the client declares, a hint
	Encoding   string     // of a plain text; empty: it is found
	Language   string     // its code in ISO 639-1; empty: it is found
	Duplicates Duplicates // empty: Suffix
	Body       io.Reader

	ID          string // file- and a UUID; empty: a new one
	KeepsClosed bool   // it does not open by itself for agents with the folder
}

// TooLargeError says that an upload is larger than the server accepts.
type TooLargeError struct{ LimitBytes int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the file is larger than the limit of %d bytes; the operator can raise it (LOCI_MAX_UPLOAD_BYTES)",
		e.LimitBytes)
}

// UnsupportedError says that Loci does not read the format of an upload. errors.Is finds ErrInvalid in it.
type UnsupportedError struct{ *document.UnsupportedError }

// Unwrap returns ErrInvalid.
func (e *UnsupportedError) Unwrap() error { return db.ErrInvalid }

// Upload stores a document in a folder and queues its parsing. It reads the whole body, up to the limit, and recognizes
// the format before it writes any row. It writes everything in one transaction. If Duplicates is Skip and the folder
// has the name, skipped is true and f is the old file. ErrNotFound if the folder does not exist; ErrInvalid if the name
// is not valid; *TooLargeError; *UnsupportedError.
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
	if err := CheckLanguage(u.Language); err != nil {
		return File{}, false, err
	}
	mediaType, err := u.sniff(name, spooled, s.o.Accepts)
	if u.ID != "" && spooled.Size() == 0 { // the file of an agent has it: its document was not read yet
		mediaType, err = "text/plain", nil
	}
	if unsupported, ok := errors.AsType[*document.UnsupportedError](err); ok {
		return File{}, false, &UnsupportedError{unsupported}
	}
	if err != nil {
		return File{}, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	err = s.inTx(ctx, func(in *Store) error {
		// The folder may be deleted meanwhile.
		if err := in.lockFolder(ctx, org, folder.Key, "KEY SHARE"); err != nil {
			return err
		}
		row := newFile{org: org, folder: folder, name: name, mediaType: mediaType, encoding: u.Encoding,
			language: u.Language, spooled: spooled,
			id: cmp.Or(u.ID, filePrefix+uuid.NewString()), keepsClosed: u.KeepsClosed,
			provenance: db.ProvenanceOf(ctx)}
		if row.turn, err = in.parseTurn(ctx, org, folder.Key, row.Size(), mediaType); err != nil {
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
		if ref.limited {
			if err := db.CheckQuotaLast(ctx, in.db, org, db.QuotaStoredBytes, row.Size()); err != nil {
				return err
			}
		}
		// Read it here, because after the commit another upload may replace it.
		f, err = in.File(ctx, org, folderID, ref.ID, false)
		return err
	})
	if err != nil {
		return File{}, false, err
	}
	return f, skipped, nil
}

// CheckLanguage returns ErrInvalid if a code is not empty and of no language.
func CheckLanguage(code string) error {
	if code == "" || slices.Contains(lexicon.Codes(), code) {
		return nil
	}
	return &db.FieldError{Field: "language", Rule: lexicon.NotACode}
}

// sniff returns the media type of an upload. If the uploader names an encoding, the upload is a plain text, unless its
// bytes are those of another format. ErrInvalid if the encoding is not known, or the format has none.
func (u Upload) sniff(name string, body *spooled, accepts document.Accepted) (string, error) {
	mediaType, err := accepts.Sniff(name, u.MediaType, body, body.Size())
	if u.Encoding == "" {
		return mediaType, err
	}
	if err := document.CheckCharset(u.Encoding); err != nil {
		return "", db.Invalid("%s", err)
	}
	if unsupported, ok := errors.AsType[*document.UnsupportedError](err); ok && isPlain[unsupported.MediaType] {
		mediaType, err = document.TextType(name, u.MediaType), nil
	}
	if err == nil && (document.Input{MediaType: mediaType}).IsComplex() && !document.IsMail(mediaType) {
		return "", db.Invalid("'%s' is %s, which says its encoding itself; upload it without 'encoding'", name, mediaType)
	}
	return mediaType, err
}

// isPlain are the media types of files that may be plain text, though they do not look like it.
var isPlain = map[string]bool{"": true, "text/plain": true}

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

// spool writes the body to a temporary file. It reads at most one byte more than the limit.
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
	encoding  string
	language  string
	turn      queue.Turn // turn of its parsing
	*spooled

	id          string
	keepsClosed bool
	provenance  *db.Provenance
}

// insertNamed inserts the row under its name. If the name is taken, it does as Duplicates says. If it inserts nothing,
// skipped is true, and it returns the file with the name.
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
		// ErrNotFound means that the old file was deleted, or the next name was taken meanwhile.
		if !errors.Is(err, db.ErrNotFound) {
			return ref, skipped, err
		}
	}
	return fileRef{}, false, db.Conflict("other uploads take every name like '%s'; try again", row.name)
}

// nameTries is how often an upload tries to get a name before other uploads take it.
const nameTries = 100

// insert inserts the row under a name. ErrNotFound if the folder has the name already.
func (s *Store) insert(ctx context.Context, row newFile, name string, replaces *int64) (fileRef, error) {
	type inserted struct {
		fileRef
		Limit *int64 `db:"quota"`
	}
	f, err := db.One[inserted](ctx, s.db, db.Counting("files", `
		INSERT INTO files (id, org, folder_key, name, original_name, replaces, media_type, size_bytes, sha256, turn,
		                   provenance, encoding, language, language_given)
		VALUES (@id, @org, @folder, @name, @original, @replaces, @media, @size, @sha256, @turn,
		        @provenance, nullif(@encoding, ''), nullif(@language, ''), @language <> '')
		ON CONFLICT (org, folder_key, name) WHERE replaces IS NULL DO NOTHING`, `, key, id`)+`
		SELECT key, id, (SELECT stored_bytes FROM quotas WHERE org = @org) AS quota FROM added`,
		pgx.StrictNamedArgs{"id": row.id, "org": row.org, "folder": row.folder.Key, "name": name, "original": row.name,
			"replaces": replaces, "media": row.mediaType, "size": row.Size(), "sha256": row.sum,
			"turn": row.turn.Next(cost(row.Size())).Start, "provenance": row.provenance, "encoding": row.encoding,
			"language": row.language})
	if err == nil && f.Limit != nil { // before its bytes are stored
		f.limited, err = true, db.CheckQuota(ctx, s.db, row.org, db.QuotaStoredBytes, row.Size())
	}
	return f.fileRef, err
}

// lockNamed locks and returns the file with the row's name.
func (s *Store) lockNamed(ctx context.Context, row newFile) (fileRef, error) {
	return db.One[fileRef](ctx, s.db, `
		SELECT key, id FROM files
		WHERE org = $1 AND folder_key = $2 AND name = $3 AND replaces IS NULL
		FOR UPDATE`, row.org, row.folder.Key, row.name)
}

// insertReplacement inserts the row as a replacement of the file with its name. The replacement happens once its text
// is ready. It deletes earlier replacements that are not ready.
func (s *Store) insertReplacement(ctx context.Context, row newFile) (fileRef, error) {
	old, err := s.lockNamed(ctx, row)
	if err != nil {
		return fileRef{}, err
	}
	if err := s.deleteFiles(ctx, row.org, `r.replaces = $2`, old.Key); err != nil {
		return fileRef{}, err
	}
	return s.insert(ctx, row, row.name, &old.Key)
}

// insertSuffixed inserts the row under the first free name_(n).ext up to n = 16. Beyond 16, it finds a free n behind a
// taken one by doubling and halving, so that it looks at few names, however many the folder has.
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

// firstFree returns the first number that gives a name the folder does not have, or the last number if all names are
// taken.
func (s *Store) firstFree(ctx context.Context, row newFile, numbers []int) (int, error) {
	names := mapped(numbers, func(n int) string { return Suffixed(row.name, n) })
	taken, err := db.All[string](ctx, s.db, `
		SELECT name FROM files
		WHERE org = $1 AND folder_key = $2 AND replaces IS NULL AND name = ANY ($3)`, row.org, row.folder.Key, names)
	free := slices.IndexFunc(names, func(name string) bool { return !slices.Contains(taken, name) })
	if free < 0 {
		free = len(numbers) - 1
	}
	return numbers[free], err
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
	return s.enqueue(ctx, ParseArgs{Org: row.org, FileKey: fileKey, Generation: 1, size: size, mediaType: row.mediaType,
		Start: queue.At(row.turn.Start), KeepsClosed: row.keepsClosed})
}

// copyPieces stores the pieces of an original. next returns their values for file_key, ordinal, org and bytes.
func (s *Store) copyPieces(ctx context.Context, next func() ([]any, error)) error {
	_, err := s.db.CopyFrom(ctx, pgx.Identifier{"file_originals"}, []string{"file_key", "ordinal", "org", "bytes"},
		pgx.CopyFromFunc(next))
	return err
}

// insertPiece is copyPieces for an original with at most one piece. It needs a third of the round trips.
func (s *Store) insertPiece(ctx context.Context, next func() ([]any, error)) error {
	piece, err := next()
	if err != nil || piece == nil {
		return err
	}
	return s.exec(ctx, `INSERT INTO file_originals (file_key, ordinal, org, bytes) VALUES ($1, $2, $3, $4)`, piece...)
}

// IsMediaType reports whether Loci itself may have found a stored media type. Any other media type was declared by an
// upload.
func IsMediaType(mediaType string) bool { return document.IsKnown(mediaType) }
