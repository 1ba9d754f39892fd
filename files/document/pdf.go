package document

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/klippa-app/go-pdfium"
	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
)

// MaxPages is the largest number of pages of a PDF that is read.
const MaxPages = 50_000

const (
	guestMemoryPages = 512 << 20 / (64 << 10) // 512 MiB, PDFium's own memory
	maxMissingPages  = 100                    // after so many pages in a row that PDFium cannot load, reading stops
)

// engine is PDFium in a WebAssembly sandbox without access to files. It reads one PDF.
type engine struct {
	pool pdfium.Pool
	pdfium.Pdfium
}

// pdfium starts PDFium.
func (r Readers) pdfium() (*engine, error) {
	pool, err := pdfiumPool(r.compiled())
	if err != nil && r.CacheDir != "" { // the disk may be full, or the cache broken
		pool, err = pdfiumPool(nil)
	}
	if err != nil {
		return nil, fmt.Errorf("start PDFium: %w", err)
	}
	instance, err := pool.GetInstance(time.Minute)
	if err != nil {
		_ = pool.Close() // the error above says more
		return nil, fmt.Errorf("start PDFium: %w", err)
	}
	return &engine{pool, instance}, nil
}

func (e *engine) close() {
	_ = e.Close() // the memory is freed with the pool
	_ = e.pool.Close()
}

// read returns the text of a PDF. A page that cannot be read is empty.
func (e *engine) read(input Input) (Text, error) {
	body, err := input.seekable()
	if err != nil {
		return Text{}, err
	}
	opened, err := e.OpenDocument(&requests.OpenDocument{FileReader: body, FileReaderSize: input.SizeBytes})
	if err != nil {
		return Text{}, pdfRefusal(err)
	}
	closing := &requests.FPDF_CloseDocument{Document: opened.Document} // a mail may have several PDFs attached
	defer e.FPDF_CloseDocument(closing)                                //nolint:errcheck // its memory is freed at the end
	r := &pdf{Pdfium: e, doc: opened.Document, log: input.Log}
	r.omitted.withPictures = input.Scans
	r.openForm()
	defer r.closeForm()
	pages, err := r.pages()
	if err != nil {
		return Text{}, err
	}
	text, err := joinPages(pages)
	if err != nil && (!input.Scans || len(r.unread) == 0 || isTooLong(err)) {
		return Text{}, err
	}
	text.Omitted, text.Unread = withOCRRemedy(r.omitted.list()), r.unread
	text.Pictures = r.omitted.listPictures()
	return text, nil
}

func pdfiumPool(cache wazero.CompilationCache) (pdfium.Pool, error) {
	return webassembly.Init(webassembly.Config{
		MaxIdle: 1, MaxTotal: 1, FSConfig: wazero.NewFSConfig(), Stdout: io.Discard, Stderr: io.Discard,
		RuntimeConfig: wazero.NewRuntimeConfig().WithMemoryLimitPages(guestMemoryPages).WithCompilationCache(cache),
	})
}

// compiled returns the cache of PDFium's machine code, with which PDFium starts ten times faster. It returns nil if
// there is no safe place for the cache.
func (r Readers) compiled() wazero.CompilationCache {
	if r.CacheDir == "" || !isPrivate(r.CacheDir) {
		return nil
	}
	cache, err := wazero.NewCompilationCacheWithDir(r.CacheDir)
	if err != nil {
		return nil
	}
	return cache
}

// isPrivate reports whether nobody else may write to a directory. This matters because the code in the cache is run.
func isPrivate(dir string) bool {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode().Perm()&0o022 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}

func pdfRefusal(err error) error {
	switch {
	case errors.Is(err, pdfiumerrors.ErrPassword):
		return unreadable("The PDF is encrypted and opens only with a password. " +
			"Save it without the password and upload that.")
	case errors.Is(err, pdfiumerrors.ErrSecurity):
		return unreadable("The PDF is encrypted in a way that is not known here. Save it without encryption and upload that.")
	}
	return unreadable("The PDF is damaged: no page of it can be found. " +
		"Open it in a PDF program, save it again, and upload that.")
}

// pages returns the text of each page as PDFium extracts it, and notes what else the document has.
func (r *pdf) pages() (pages []string, err error) {
	counted, err := r.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: r.doc})
	if err != nil {
		return nil, pdfRefusal(err)
	}
	size, missing := 0, 0
	for i := 0; i < counted.PageCount && missing < maxMissingPages; i++ {
		if i == MaxPages {
			return nil, unreadable("The PDF has more than %d pages. Split it and upload the parts.", MaxPages)
		}
		r.omitted.at = numbered("page", i+1)
		text, err := r.page(i)
		if missing++; err == nil {
			missing = 0
		}
		if size += len(text); size > MaxTextBytes {
			return nil, tooMuchText()
		}
		pages = append(pages, text)
		r.log.read(i+1, counted.PageCount)
	}
	if attached, err := r.FPDFDoc_GetAttachmentCount(
		&requests.FPDFDoc_GetAttachmentCount{Document: r.doc}); err == nil {
		r.omitted.addAt(attachment, place{}, attached.AttachmentCount)
	}
	if signed, err := r.FPDF_GetSignatureCount(&requests.FPDF_GetSignatureCount{Document: r.doc}); err == nil {
		r.omitted.addAt("digital signature", place{}, signed.Count)
	}
	if missing == maxMissingPages {
		pages = pages[:len(pages)-missing]
	}
	r.sayOfItself(pages)
	if len(pages) == 0 || missing == len(pages) {
		return nil, pdfRefusal(pdfiumerrors.ErrPage)
	}
	return pages, nil
}

// sayOfItself adds what the document says of itself to its last page.
func (r *pdf) sayOfItself(pages []string) {
	text := strings.Join(pages, "\n")
	if isBlank(text) {
		return // that alone is no text
	}
	var said properties
	for _, tag := range []string{titleLabel, subjectLabel, authorLabel, keywordsLabel} {
		got, err := r.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: r.doc, Tag: tag})
		if err == nil {
			said.add(tag, strings.ToValidUTF8(got.Value, ""))
		}
	}
	if lines := said.lines(text); len(lines) > 0 {
		pages[len(pages)-1] += "\n\n" + strings.Join(lines, "\n")
	}
}

// page returns the text of one page: its own text with the values of its fields, then the comments on it. The engine
// closes the page itself when the next page is loaded.
func (r *pdf) page(index int) (string, error) {
	page := r.pageAt(index)
	t, err := r.uprightText(page)
	r.omitFrom(index, t, err)
	if err != nil {
		return "", err
	}
	defer t.close()
	found := t.annotations(page)
	t.drawn = t.takeDrawn(page)
	shown, closed := t.withAppearances(page, found.appearances)
	defer closed()
	shown.omitWordless(found.appearances)
	shown.joinRaised()
	shown.mendDirections()
	text := shown.with(slices.Concat(found.placed, targets(found.links), shown.drawn))
	text += strings.ReplaceAll(t.marks, markBegins, "\n\n"+markBegins)
	if len(found.notes) > 0 {
		text += "\n\n" + strings.Join(found.notes, "\n")
	}
	return text, nil
}
