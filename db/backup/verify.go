package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/loci-memory/loci/db"
)

// damaged returns the ErrInvalid of a file that is not as Write wrote it.
func damaged(format string, args ...any) error {
	return db.Invalid("the file is no whole backup of Loci: "+format+". Nothing was read from it; use another copy",
		args...)
}

// maxEntryBytes is the size limit of an entry that is read into memory.
const maxEntryBytes = 16 << 20

// file is a backup that is being read.
type file struct {
	archive *tar.Reader
	packed  *zstd.Decoder
	summed  *summed
	next    *tar.Header // the next entry; nil at the end
	Header
}

// open reads the beginning of a file. ErrInvalid if the file is not a backup, or has another format.
func open(from io.Reader) (*file, error) {
	input := newSummed(from)
	packed, err := zstd.NewReader(input, zstd.WithDecoderMaxMemory(256<<20), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, damaged("%v", err)
	}
	f := &file{archive: tar.NewReader(packed), packed: packed, summed: input}
	if err := f.advance(); err != nil {
		return nil, err
	}
	if f.next == nil || f.next.Name != headerName {
		return nil, damaged("it does not begin with %s", headerName)
	}
	if err := f.decode(&f.Header); err != nil {
		return nil, err
	}
	if f.Format != Format {
		return nil, db.Invalid("the file has the format %d, written by Loci %s; this program reads the format %d: use the "+
			"version that wrote it", f.Format, f.Loci, Format)
	}
	return f, nil
}

func (f *file) close() { f.packed.Close() }

// advance moves to the next entry.
func (f *file) advance() (err error) {
	if f.next, err = f.archive.Next(); errors.Is(err, io.EOF) {
		f.next, err = nil, nil
	}
	if err != nil {
		return damaged("%v", err)
	}
	if f.next != nil && (f.next.Typeflag != tar.TypeReg || f.next.Size > maxEntryBytes) {
		return damaged("it has an entry %q, which no backup has", db.Short(f.next.Name))
	}
	return nil
}

// decode reads the current entry as JSON, and moves to the next one.
func (f *file) decode(into any) error {
	text, err := io.ReadAll(f.archive)
	if err != nil {
		return damaged("%v", err)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return damaged("%s: %v", f.next.Name, err)
	}
	return f.advance()
}

// rows reads the rows of one table, from its first piece to its last.
type rows struct {
	*file
	table  string
	number int
	left   int64 // bytes left in the current piece
}

// table returns the table of the current entry. It is empty if the entry is not a piece of a table.
func (f *file) table() string {
	if f.next == nil {
		return ""
	}
	name, found := strings.CutPrefix(f.next.Name, "tables/")
	if !found {
		return ""
	}
	name, _, _ = strings.Cut(name, "/")
	return name
}

// Read implements io.Reader.
func (r *rows) Read(into []byte) (int, error) {
	for r.left == 0 {
		if r.number > 0 {
			if err := r.advance(); err != nil {
				return 0, err
			}
		}
		if r.file.table() != r.table {
			return 0, io.EOF
		}
		if r.number++; r.next.Name != pieceName(r.table, r.number) || r.next.Size == 0 {
			return 0, damaged("it has %q where piece %d of %s belongs", db.Short(r.next.Name), r.number, r.table)
		}
		r.left = r.next.Size
	}
	n, err := r.archive.Read(into)
	r.left -= int64(n)
	if errors.Is(err, io.EOF) {
		err = nil
		if r.left > 0 {
			err = damaged("it ends within %s", r.table)
		}
	}
	if err != nil && !errors.Is(err, db.ErrInvalid) {
		err = damaged("%v", err)
	}
	return n, err
}

// Verify reads a file to its end and returns its manifest. ErrInvalid if the file is not a backup, or was cut or
// altered.
func Verify(from io.Reader, progress func(table string, bytes int64)) (m Manifest, err error) {
	f, err := open(from)
	if err != nil {
		return m, err
	}
	defer f.close()
	found := map[string]Table{}
	for t := f.table(); t != ""; t = f.table() {
		if _, twice := found[t]; twice {
			return m, damaged("it has the table %q twice", db.Short(t))
		}
		sum := sha256.New()
		n, err := io.Copy(sum, &rows{file: f, table: t})
		if err != nil {
			return m, err
		}
		found[t] = Table{Bytes: n, SHA256: hex.EncodeToString(sum.Sum(nil))}
		if progress != nil {
			progress(t, n)
		}
	}
	if f.next == nil || f.next.Name != manifestName {
		return m, damaged("it ends before its manifest")
	}
	if err := f.decode(&m); err != nil {
		return m, err
	}
	if f.next != nil {
		return m, damaged("it has %q after its manifest", db.Short(f.next.Name))
	}
	if _, err := io.Copy(io.Discard, f.packed); err != nil { // the checksum of the compressed stream is at its end
		return m, damaged("%v", err)
	}
	if _, err := io.Copy(io.Discard, f.summed); err != nil {
		return m, damaged("%v", err)
	}
	if !f.summed.whole() {
		return m, damaged("its bytes have another SHA-256 than its end says")
	}
	return m, m.check(f.Header, found)
}

// check compares a manifest with the tables that were found in its file.
func (m Manifest) check(h Header, found map[string]Table) error {
	if m.Header != h {
		return damaged("its beginning and its end are of two backups")
	}
	empty := hex.EncodeToString(sha256.New().Sum(nil))
	for _, t := range m.Tables {
		f, ok := found[t.Name]
		if !ok {
			f.SHA256 = empty
		}
		if f.Bytes != t.Bytes || f.SHA256 != t.SHA256 {
			return damaged("the table %s has %d bytes with the SHA-256 %s, and its manifest says %d and %s", t.Name, f.Bytes,
				f.SHA256, t.Bytes, t.SHA256)
		}
	}
	for name := range found {
		if !m.has(name) {
			return damaged("it has a table %q, which its manifest lacks", db.Short(name))
		}
	}
	return nil
}
