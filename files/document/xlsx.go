package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/xuri/excelize/v2"
)

// XLSX reads an Excel workbook: each sheet is a page below its name, each block of rows is a table, each cell is as
// displayed. Dates in the default format are shown as 2026-03-31. Formulas are shown by the values that were last
// computed. Hidden sheets are left out.
func XLSX(r io.ReaderAt, size int64) (Text, error) {
	return readArchive(r, size, func(a *archive, md *markdown) error {
		if _, err := a.mainPart("xl/workbook.xml"); err != nil {
			return err
		}
		if err := a.measure(); err != nil {
			return err
		}
		a.omitMacros()
		a.omitDrawn()
		return writeBook(a.source, size, md)
	})
}

// omitDrawn notes what a workbook has besides its cells.
func (a *archive) omitDrawn() {
	for _, name := range a.names {
		switch folder := path.Dir(name); {
		case folder == "xl/media":
			a.budget.omitted.addAt(picture, place{}, 1)
		case folder == "xl/charts" && strings.HasPrefix(path.Base(name), "chart"):
			a.budget.omitted.addAt(chart, place{}, 1)
		case folder == "xl/embeddings":
			a.budget.omitted.addAt(embeddedKind(name), place{}, 1)
		case strings.HasPrefix(path.Base(name), "comments") && strings.HasSuffix(name, ".xml"):
			a.budget.omitted.addAt("sheet with comments", place{}, 1)
		}
	}
}

// measure unpacks every part once, so that the library gets only archives that are complete and within the limits.
func (a *archive) measure() error {
	block := make([]byte, 64<<10)
	for _, name := range a.names {
		body, err := a.open(name)
		if err != nil {
			return err
		}
		for err == nil {
			var n int
			n, err = body.Read(block)
			if strings.HasSuffix(name, ".xml") || strings.HasSuffix(name, ".rels") {
				a.budget.tokens -= bytes.Count(block[:n], []byte("<"))
			}
		}
		body.Close() //nolint:errcheck,gosec // read only
		if !errors.Is(err, io.EOF) {
			return err
		}
	}
	return a.budget.spent()
}

// writeBook returns an error if the library panics on a workbook that it does not expect.
func writeBook(r io.ReaderAt, size int64, md *markdown) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a sheet cannot be laid out: %v", p)
		}
	}()
	// With equal limits, the library unpacks nothing to temporary files.
	book, err := excelize.OpenReader(io.NewSectionReader(r, 0, size), excelize.Options{
		UnzipSizeLimit: maxUnpackedBytes, UnzipXMLSizeLimit: maxUnpackedBytes, ShortDatePattern: "yyyy-mm-dd",
	})
	if err != nil {
		return err
	}
	defer book.Close() //nolint:errcheck // read only
	s := &sheetWriter{md: md}
	for _, name := range book.GetSheetList() {
		if visible, err := book.GetSheetVisible(name); err != nil || !visible {
			md.budget.omitted.addAt(hiddenSheet, named("sheet", name), 1)
			continue
		}
		if err := s.read(book, name); err != nil {
			return err
		}
	}
	s.flush()
	return nil
}

func (s *sheetWriter) read(book *excelize.File, name string) error {
	rows, err := book.Rows(name)
	if err != nil {
		return nil //nolint:nilerr // the sheet of a chart or a macro has no rows
	}
	defer rows.Close() //nolint:errcheck // read only
	s.sheet(name)
	for rows.Next() {
		columns, err := columnsOf(rows)
		if err != nil {
			return err
		}
		if err := s.row(columns); err != nil {
			return err
		}
	}
	return rows.Error()
}

// maxBadCells is how many cells of a row may have a reference outside the sheet.
const maxBadCells = 100

// columnsOf returns the cells of a row. A cell with a reference outside the sheet is #REF!, as Excel writes it.
func columnsOf(rows *excelize.Rows) (cells []string, err error) {
	for range maxBadCells {
		var more []string
		more, err = rows.Columns() // after an error, Columns continues with the next cell
		cells = append(cells, more[min(len(cells), len(more)):]...)
		outside := errors.Is(err, excelize.ErrColumnNumber) || errors.Is(err, excelize.ErrMaxRows) ||
			err != nil && strings.HasPrefix(err.Error(), "cannot convert cell")
		if !outside {
			return cells, err
		}
		cells = append(cells, "#REF!")
	}
	return nil, err
}
