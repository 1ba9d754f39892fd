// Package operator has programs of the operator read what Loci does not: OCR reads pictures and pages that are
// pictures, and a converter turns documents in old formats into such that Loci reads. The programs run in a sandbox.
//
// Each file uses only the files named before it: command.go runs one program; operator.go reads documents with them.
package operator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/loci-memory/loci/db/spool"
	"github.com/loci-memory/loci/files/document"
	"github.com/loci-memory/loci/files/document/child"
)

const (
	maxPageTextBytes = 4 << 20   // that OCR may print for a page or a picture
	maxOutputBytes   = 256 << 20 // of a converted document
	maxFailures      = 3         // pages or pictures in a row that OCR fails to read, without having read one
)

// Reader reads documents.
type Reader struct {
	Documents *child.Reader
	OCR       *Command // nil: none
	Convert   *Command // nil: none
}

// Accepted returns which further formats the reader reads.
func (r *Reader) Accepted() document.Accepted {
	return document.Accepted{Pictures: r.OCR != nil, OldFormats: r.Convert != nil}
}

// Read returns the text of a document. Its errors are those of child.Reader, and document.ErrStuck,
// document.ErrGoesOn.
func (r *Reader) Read(ctx context.Context, input document.Input) (document.Text, error) {
	old, isOld := input.Old()
	switch {
	case input.PictureExtension() != "" && r.OCR != nil:
		return r.picture(ctx, input)
	case isOld && r.Convert != nil:
		return r.converted(ctx, input, old)
	}
	return r.document(ctx, input)
}

// document returns the text of a document that Loci reads.
func (r *Reader) document(ctx context.Context, input document.Input) (document.Text, error) {
	if r.OCR != nil && input.MayHavePictures() {
		return r.withOCR(ctx, input)
	}
	return r.Documents.Read(ctx, input)
}

// picture returns the text that OCR reads in a picture.
func (r *Reader) picture(ctx context.Context, input document.Input) (out document.Text, err error) {
	read := ""
	in := task{extension: input.PictureExtension(), body: input.Body, most: maxPageTextBytes}
	err = r.OCR.run(ctx, in, func(output *os.File) error {
		read, err = text(output, maxPageTextBytes)
		return err
	})
	if err != nil {
		return out, r.OCR.unreadable(err)
	}
	return document.PictureText(read, r.OCR.Name())
}

// unreadable returns the error for the uploader if a program failed.
func (c *Command) unreadable(err error) error {
	if missing, ok := errors.AsType[*missingError](err); ok {
		return &document.UnreadableError{Reason: fmt.Sprintf("The program %s of %s could not be run: %s. "+
			"The operator has to mend that; then retry the file.", c.Name(), c.Setting, missing.reason)}
	}
	if failed, ok := errors.AsType[*failedError](err); ok {
		return &document.UnreadableError{Reason: fmt.Sprintf("The program %s of %s did not read the file: %s.",
			c.Name(), c.Setting, failed.reason)}
	}
	return err
}

// converted returns the text of a document that a program converts.
func (r *Reader) converted(ctx context.Context, input document.Input, old document.Old) (out document.Text, err error) {
	in := task{extension: old.From, body: input.Body, format: old.To, most: maxOutputBytes}
	err = r.Convert.run(ctx, in, func(output *os.File) error {
		info, err := output.Stat()
		if err != nil {
			return err
		}
		if info.Size() > maxOutputBytes {
			return failed("it wrote too much")
		}
		mediaType, err := document.Sniff("converted."+old.To, "", output, info.Size())
		if _, unsupported := errors.AsType[*document.UnsupportedError](err); unsupported || info.Size() == 0 {
			return failed("what it wrote is not a .%s file", old.To)
		}
		if err != nil {
			return err
		}
		read := document.Input{MediaType: mediaType, SizeBytes: info.Size(), Body: output, Log: input.Log}
		if !read.IsComplex() {
			return failed("what it wrote is not a .%s file", old.To)
		}
		out, err = r.document(ctx, read)
		return err
	})
	out.ReadBy = append(out.ReadBy, document.ReadBy{Kind: document.ByConversion, Program: r.Convert.Name()})
	return out, r.Convert.unreadable(err)
}

// withOCR returns the text of a document, with what OCR reads in its pictures, and on a PDF's pages without text.
func (r *Reader) withOCR(ctx context.Context, input document.Input) (document.Text, error) {
	body := &spool.Spool{Dir: r.Documents.TempDir}
	defer body.Close()
	if _, err := io.Copy(body, input.Body); err != nil {
		return document.Text{}, fmt.Errorf("spool the document: %w", err)
	}
	file, err := body.File()
	if err != nil {
		return document.Text{}, fmt.Errorf("spool the document: %w", err)
	}
	input.Body, input.Scans = file, true
	out, err := r.Documents.Read(ctx, input)
	if err == nil && len(out.Unread) > 0 {
		out, err = r.withPages(ctx, input, file, out)
	}
	if err == nil && len(out.Pictures) > 0 {
		out, err = r.withPictures(ctx, input, file, out)
	}
	return out, err
}

func (r *Reader) withPages(ctx context.Context, input document.Input, file *os.File, out document.Text) (
	document.Text, error) {
	s := &scan{Reader: r, log: input.Log, read: map[int]string{}}
	total := len(out.Pages)
	for i, page := range out.Unread {
		err := s.one(ctx, page, func() ([]byte, error) { return r.Documents.Image(ctx, input, file, page) })
		if err != nil {
			return document.Text{}, r.OCR.unreadable(err)
		}
		if s.failures >= maxFailures && s.readSome == 0 {
			break
		}
		if input.Log != nil && input.Log.Read != nil {
			input.Log.Read(total-len(out.Unread)+i+1, total)
		}
	}
	return out.WithPages(s.read, r.OCR.Name(), s.reason())
}

// Pictures of one document that OCR reads, each once. What it reads of them is kept as if of pages from pictureKeys on.
const (
	maxPictures = 200
	pictureKeys = 1_000_000
)

func (r *Reader) withPictures(ctx context.Context, input document.Input, file *os.File, out document.Text) (
	document.Text, error) {
	s := &scan{Reader: r, log: input.Log, read: map[int]string{}}
	first := map[string]int{} // by the part: a logo may be on each slide
	why := ""
	for i, picture := range out.Pictures {
		key := pictureKeys + i
		if seen, again := first[picture.Part]; again {
			s.read[key] = s.read[seen]
			continue
		}
		if len(first) == maxPictures {
			why = fmt.Sprintf("%s reads %d pictures of a document", r.OCR.Name(), maxPictures)
			break
		}
		first[picture.Part] = key
		err := s.one(ctx, key, func() ([]byte, error) { return r.Documents.Picture(ctx, input, file, picture.Part) })
		if err != nil {
			return document.Text{}, r.OCR.unreadable(err)
		}
		if s.failures >= maxFailures && s.readSome == 0 {
			break
		}
	}
	if why == "" {
		why = s.reason()
	}
	read := make(map[int]string, len(s.read))
	for key, text := range s.read {
		read[key-pictureKeys] = text
	}
	return out.WithPictures(read, r.OCR.Name(), why)
}

// scan is the reading of pages or pictures by OCR.
type scan struct {
	*Reader

	log      *document.PageLog
	read     map[int]string
	readSome int    // pages that OCR read
	failures int    // pages that it did not read
	why      string // why it did not read the first of them
	took     time.Duration
}

// reason says why pages have no text.
func (s *scan) reason() string {
	if s.why != "" {
		return s.OCR.Name() + " failed: " + s.why
	}
	return s.OCR.Name() + " found no text"
}

// one has OCR read a page or a picture, unless an earlier attempt did. It notes why it cannot be read. An error if none
// can be, or the attempt has to end: document.ErrGoesOn if there is no time for another one.
func (s *scan) one(ctx context.Context, key int, image func() ([]byte, error)) error {
	if s.log != nil {
		if kept, ok := s.log.Kept[key]; ok {
			s.read[key] = kept
			s.readSome++
			return nil
		}
	}
	if deadline, ok := ctx.Deadline(); ok && s.readSome > 0 && time.Until(deadline) < reserve+2*s.took {
		return document.ErrGoesOn
	}
	began := time.Now()
	read, err := s.ocr(ctx, image)
	s.took = max(s.took, time.Since(began))
	if failure, ok := errors.AsType[*failedError](err); ok {
		if s.failures++; s.why == "" {
			s.why = failure.reason
		}
		return nil
	}
	if err != nil {
		return err
	}
	s.read[key] = read
	s.readSome++
	if s.log != nil && s.log.Keep != nil {
		return s.log.Keep(ctx, key, read)
	}
	return nil
}

// reserve is the part of an attempt's time in which no further page is begun.
const reserve = 5 * time.Minute

func (s *scan) ocr(ctx context.Context, image func() ([]byte, error)) (read string, err error) {
	raw, err := image()
	if unreadable, ok := errors.AsType[*document.UnreadableError](err); ok {
		return "", failed("%s", unreadable.Reason)
	}
	if err != nil {
		return "", err
	}
	in := task{extension: document.PictureType(raw), body: bytes.NewReader(raw), most: maxPageTextBytes}
	err = s.OCR.run(ctx, in, func(output *os.File) error {
		read, err = text(output, maxPageTextBytes)
		return err
	})
	return read, err
}
