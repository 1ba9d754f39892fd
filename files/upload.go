package files

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/queue"
	"github.com/loci-memory/loci/files/document"
)

// Duplicates says what an upload does whose name the folder has already.
type Duplicates string

// Suffix, the default, stores name_(1).ext beside it; Skip keeps what is there; Reject fails; Replace takes its place
// once the new text is ready.
const (
	Suffix  Duplicates = "suffix"
	Skip    Duplicates = "skip"
	Reject  Duplicates = "error"
	Replace Duplicates = "replace"
)

// Upload is a document that arrives.
type Upload struct {
	Name       string     // as the client calls its file
	Override   string     // the name to store it under, which may have slashes; empty to use Name
	MediaType  string     // as the client declares it, a hint
	Duplicates Duplicates // empty is Suffix
	Body       io.Reader
}

// TooLargeError says that an upload is larger than the server takes.
type TooLargeError struct{ LimitBytes int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the file is larger than the limit of %d bytes; the operator can raise it (LOCI_MAX_UPLOAD_BYTES)", e.LimitBytes)
}

// UnsupportedError says that an upload is of a kind that is not read. It is an ErrInvalid.
type UnsupportedError struct{ *document.UnsupportedError }

// Unwrap makes it an ErrInvalid.
func (e *UnsupportedError) Unwrap() error { return db.ErrInvalid }

const (
	pieceBytes    = 1 << 20         // of an original, a row
	storePatience = 2 * time.Minute // for the database to take an upload
)

// Upload stores a document in a folder and queues its parsing. Nothing is stored unless all of it is: the body is taken
// whole, bounded and recognised as something Loci can read, before the first row is written. skipped is true where
// Duplicates is Skip and the folder has the name; the file returned is then the one it has. Errors: ErrNotFound for the
// folder, ErrInvalid for a name, *TooLargeError, *UnsupportedError.
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
	defer spooled.file.Close()
	mediaType, err := document.Sniff(name, u.MediaType, spooled.file, spooled.size)
	if unsupported, ok := errors.AsType[*document.UnsupportedError](err); ok {
		return File{}, false, &UnsupportedError{unsupported}
	}
	if err != nil {
		return File{}, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	err = db.Tx(ctx, s.db, func(tx pgx.Tx) error {
		if _, err := spooled.file.Seek(0, io.SeekStart); err != nil { // this may be the second try
			return err
		}
		in := s.With(tx)
		row := newFile{org: org, folder: folder, name: name, mediaType: mediaType, size: spooled.size, sha256: spooled.sum}
		if row.turn, err = in.parseStart(ctx, org, folder.Key, row.size); err != nil {
			return err
		}
		placed, was, err := in.place(ctx, row, u.Duplicates)
		if err != nil {
			return err
		}
		if skipped = was; !was {
			if err := in.keep(ctx, row, placed.Key, spooled); err != nil {
				return err
			}
		}
		f, err = in.File(ctx, org, folderID, placed.ID, false) // afterwards another upload may have replaced it
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
	file document.Spool
	size int64
	sum  []byte
}

func (s *Store) spool(body io.Reader) (*spooled, error) {
	file, err := document.NewSpool(s.o.TempDir)
	if err != nil {
		return nil, fmt.Errorf("spool the upload: %w", err)
	}
	out := &spooled{file: file}
	sum := sha256.New()
	if err := out.fill(body, s.o.MaxUploadBytes, sum); err != nil {
		file.Close()
		return nil, err
	}
	out.sum = sum.Sum(nil)
	return out, nil
}

// fill takes the body, one byte more than the limit at most.
func (s *spooled) fill(body io.Reader, limit int64, sum hash.Hash) error {
	n, err := io.Copy(io.MultiWriter(s.file, sum), io.LimitReader(body, limit+1))
	if n > limit {
		return &TooLargeError{LimitBytes: limit}
	}
	if err != nil {
		return fmt.Errorf("receive the upload: %w", err)
	}
	s.size = n
	return nil
}

// newFile is the row that an upload becomes.
type newFile struct {
	org       db.Org
	folder    Folder
	name      string
	mediaType string
	size      int64
	sha256    []byte
	turn      time.Time // where its parsing begins
}

// fileRef identifies a file.
type fileRef struct {
	Key int64  `db:"key"`
	ID  string `db:"id"`
}

// place finds the upload its name and writes its row; was says that the row was there and nothing is to be stored.
func (s *Store) place(ctx context.Context, row newFile, d Duplicates) (p fileRef, was bool, err error) {
	for range placeTries {
		p, err = s.insert(ctx, row, row.name, nil)
		if !errors.Is(err, db.ErrNotFound) {
			return p, false, err
		}
		switch d { // the name is taken
		case Reject:
			return p, false, db.Invalid("File '%s' already exists in folder '%s'", row.name, row.folder.Name)
		case Skip:
			p, err = s.taken(ctx, row)
			was = err == nil
		case Replace:
			p, err = s.insertReplacement(ctx, row)
		default:
			p, err = s.insertSuffixed(ctx, row)
		}
		if !errors.Is(err, db.ErrNotFound) { // not found: it was deleted meanwhile, or the next name was taken
			return p, was, err
		}
	}
	return fileRef{}, false, db.Conflict("other uploads take every name like '%s'; try again", row.name)
}

// placeTries is how often an upload looks for a name that nobody takes before it.
const placeTries = 100

// insert writes the row under a name; ErrNotFound if the folder has the name.
func (s *Store) insert(ctx context.Context, row newFile, name string, replaces *int64) (fileRef, error) {
	return db.One[fileRef](ctx, s.db, `
		INSERT INTO files (org, folder_key, name, original_name, replaces, media_type, size_bytes, sha256, turn)
		VALUES (@org, @folder, @name, @original, @replaces, @media, @size, @sha256, @turn)
		ON CONFLICT (folder_key, name) WHERE replaces IS NULL DO NOTHING
		RETURNING key, id`,
		pgx.StrictNamedArgs{"org": row.org, "folder": row.folder.Key, "name": name, "original": row.name, "replaces": replaces,
			"media": row.mediaType, "size": row.size, "sha256": row.sha256, "turn": row.turn.Add(cost(row.size))})
}

func (s *Store) taken(ctx context.Context, row newFile) (fileRef, error) {
	return db.One[fileRef](ctx, s.db, `
		SELECT key, id FROM files
		WHERE org = @org AND folder_key = @folder AND name = @name AND replaces IS NULL
		FOR UPDATE`,
		pgx.StrictNamedArgs{"org": row.org, "folder": row.folder.Key, "name": row.name})
}

// insertReplacement writes a row that takes the place of the one with its name when its text is ready. A replacement
// that is not ready yet is superseded.
func (s *Store) insertReplacement(ctx context.Context, row newFile) (fileRef, error) {
	old, err := s.taken(ctx, row)
	if err != nil {
		return fileRef{}, err
	}
	if _, err := s.db.Exec(ctx, `DELETE FROM files WHERE org = $1 AND replaces = $2`, row.org, old.Key); err != nil {
		return fileRef{}, err
	}
	return s.insert(ctx, row, row.name, &old.Key)
}

// insertSuffixed writes the row under a free name_(n).ext: the first, where that is among the first sixteen, and else
// one whose predecessor is taken. So it looks at a few names, however many there are.
func (s *Store) insertSuffixed(ctx context.Context, row newFile) (fileRef, error) {
	var tries []int
	for n := 1; n <= 16; n++ {
		tries = append(tries, n)
	}
	for n := 32; n <= 1<<30; n *= 2 {
		tries = append(tries, n)
	}
	n, err := s.firstFree(ctx, row, tries)
	if err != nil {
		return fileRef{}, err
	}
	for taken := n / 2; n > 16 && n-taken > 1; {
		tries = tries[:0]
		step := max((n-taken)/16, 1)
		for at := taken + step; at < n; at += step {
			tries = append(tries, at)
		}
		found, err := s.firstFree(ctx, row, append(tries, n))
		if err != nil {
			return fileRef{}, err
		}
		if i := slices.Index(tries, found); i > 0 {
			taken = tries[i-1]
		} else if i < 0 {
			taken = tries[len(tries)-1]
		}
		n = found
	}
	return s.insert(ctx, row, Suffixed(row.name, n), nil)
}

// firstFree returns the first of some numbers whose name the folder does not have; the last where it has all.
func (s *Store) firstFree(ctx context.Context, row newFile, numbers []int) (int, error) {
	names := make([]string, len(numbers))
	for i, n := range numbers {
		names[i] = Suffixed(row.name, n)
	}
	there, err := db.All[string](ctx, s.db, `
		SELECT name FROM files
		WHERE org = $1 AND folder_key = $2 AND replaces IS NULL AND name = ANY ($3)`, row.org, row.folder.Key, names)
	if err != nil {
		return 0, err
	}
	for i, name := range names {
		if !slices.Contains(there, name) {
			return numbers[i], nil
		}
	}
	return numbers[len(numbers)-1], nil
}

// keep stores the original in pieces and queues the file's parsing.
func (s *Store) keep(ctx context.Context, row newFile, fileKey int64, original *spooled) error {
	piece, ordinal, stored := make([]byte, pieceBytes), 0, int64(0)
	rows := pgx.CopyFromFunc(func() ([]any, error) {
		n, err := io.ReadFull(original.file, piece)
		if err == io.EOF {
			return nil, nil
		}
		if err != nil && err != io.ErrUnexpectedEOF {
			return nil, err
		}
		ordinal++
		stored += int64(n)
		return []any{fileKey, ordinal - 1, row.org, piece[:n]}, nil
	})
	if _, err := s.db.CopyFrom(ctx, pgx.Identifier{"file_originals"}, []string{"file_key", "ordinal", "org", "bytes"}, rows); err != nil {
		return fmt.Errorf("store the original: %w", err)
	}
	if stored != original.size {
		return fmt.Errorf("store the original: %d of %d bytes are there", stored, original.size)
	}
	return s.enqueue(ctx, ParseArgs{Org: row.org, FileKey: fileKey, Generation: 1, size: row.size, Start: queue.At(row.turn)})
}
