package document

import (
	"archive/zip"
	"errors"
	"io"
	"math"
	"path"
	"strings"
)

// archive is a zip file that is read within the limits of one document.
type archive struct {
	source  *source
	entries map[string]*zip.File // name → the first entry with that name
	names   []string             // names in the order of the archive
	budget  *budget
}

// source reads up to left bytes from a file. failed is the error if the file itself could not be read, which is not the
// document's fault.
type source struct {
	r      io.ReaderAt
	left   int64
	failed error
}

var errDirectory = unreadable("The archive's list of entries is longer than %d MiB. "+
	"Save the document again, and upload that.", maxDirectoryMB)

// ReadAt implements io.ReaderAt. A hostile archive may name a negative offset; there the file counts as ended.
func (s *source) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, io.EOF
	}
	if s.left -= int64(len(p)); s.left < 0 {
		return 0, errDirectory
	}
	n, err := s.r.ReadAt(p, off)
	if err != nil && !errors.Is(err, io.EOF) {
		s.failed = err
	}
	return n, err
}

// openArchive lists the entries. Archives within the archive are not opened.
func openArchive(r io.ReaderAt, size int64) (*archive, error) {
	a := &archive{source: &source{r: r, left: maxDirectoryMB << 20}, entries: map[string]*zip.File{},
		budget: newBudget()}
	_, a.budget.omitted.withPictures = r.(pictured)
	if err := refuseOLE(a.source, size); err != nil {
		return nil, err
	}
	z, err := zip.NewReader(a.source, size)
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) { // names are only looked up, not written to disk
		return nil, explain(err, a.source.failed)
	}
	a.source.left = math.MaxInt64 // entries have their own limits
	if len(z.File) > maxEntries {
		return nil, unreadable("The archive has %d entries; a document may have %d. Upload the files in it one by one.",
			len(z.File), maxEntries)
	}
	for _, f := range z.File {
		name := strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(f.Name, `\`, "/")), "/")
		if _, twice := a.entries[name]; !twice {
			a.entries[name], a.names = f, append(a.names, name)
		}
	}
	return a, nil
}

// explain turns a reader's error into a sentence for the uploader. If the file itself could not be read, it returns
// that error.
func explain(err, failed error) error {
	if known, ok := errors.AsType[*UnreadableError](err); ok {
		return known
	}
	if failed != nil {
		return failed
	}
	return unreadable("The document is damaged: %s. Open it in the program that made it, save it again, and upload that.",
		err)
}

var errNoEntry = errors.New("a part that it needs is missing")

func (a *archive) has(name string) bool {
	return a.entries[name] != nil
}

// open returns the content of an entry, which ends at the limits. errNoEntry if there is no entry with that name.
func (a *archive) open(name string) (io.ReadCloser, error) {
	f := a.entries[name]
	if f == nil {
		return nil, errNoEntry
	}
	if f.Flags&1 != 0 {
		return nil, errProtected
	}
	body, err := f.Open()
	if err != nil {
		return nil, err
	}
	packed := int64(f.CompressedSize64) //nolint:gosec // a size that wraps is below any other
	return &entry{ReadCloser: body, packed: packed, budget: a.budget}, nil
}

// readAll returns the content of an entry.
func (a *archive) readAll(name string) ([]byte, error) {
	body, err := a.open(name)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // read only
	return io.ReadAll(body)
}

// entry counts the bytes that are unpacked.
type entry struct {
	io.ReadCloser

	packed, unpacked int64
	budget           *budget
}

func (e *entry) Read(p []byte) (int, error) {
	n, err := e.ReadCloser.Read(p)
	e.unpacked += int64(n)
	e.budget.unpacked -= int64(n)
	if e.unpacked > ratioFromBytes && e.unpacked/maxRatio > e.packed {
		return 0, unreadable("A part of the document unpacks to more than %d times its size. "+
			"Save the document again, and upload that.", maxRatio)
	}
	if spent := e.budget.spent(); spent != nil {
		return 0, spent
	}
	return n, err
}
