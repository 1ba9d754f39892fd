package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/xuri/excelize/v2"
)

// XLSX reads an Excel workbook: each sheet is a page below its name, each block of rows is a table, each cell is as
// displayed. Dates in the default format are shown as 2026-03-31. Formulas are shown by the values that were last
// computed, or as formulas if none were. Text boxes, charts, diagrams and notes follow the cells of their sheet. Hidden
// sheets are left out.
func XLSX(r io.ReaderAt, size int64) (Text, error) {
	return readArchive(r, size, func(a *archive, md *markdown) error {
		main, err := a.mainPart("xl/workbook.xml")
		if err != nil {
			return err
		}
		b := &workbook{archive: a, uncomputed: map[string]bool{}, zeros: map[string]bool{}, linked: map[string]bool{},
			marked: map[string]bool{}, prompted: map[string]bool{}}
		if err := b.measure(); err != nil {
			return err
		}
		a.omitMacros()
		if err := b.readParts(main); err != nil {
			return err
		}
		return b.write(size, md)
	})
}

// hasFormula reports whether a piece of a sheet has a formula with one of these ends of its cell: with no value, or
// zero.
func hasFormula(piece []byte, ends []string) bool {
	for {
		_, after, found := bytes.Cut(piece, []byte("</f>"))
		if !found {
			return false
		}
		next := bytes.TrimLeft(after[:min(len(after), 40)], " \t\r\n")
		for _, end := range ends {
			if bytes.HasPrefix(next, []byte(end)) {
				return true
			}
		}
		piece = after
	}
}

// How a cell goes on behind its formula: without a value, and with zero.
var (
	noValue = []string{"</c>", "<v/>", "<v />", "<v></v>"}
	zero    = []string{"<v>0</v>"}
)

// measure unpacks every part once, so that the library gets only archives that are complete and within the limits. It
// also looks for formulas without values.
func (b *workbook) measure() error {
	a := b.archive
	const longest = 64 // bytes that hasFormula needs
	block := make([]byte, longest+64<<10)
	for _, name := range a.names {
		body, err := a.open(name)
		if err != nil {
			return err
		}
		kept := 0 // bytes of the last block, at the beginning of this one
		for err == nil {
			var n int
			n, err = body.Read(block[kept:])
			if strings.HasSuffix(name, ".xml") || strings.HasSuffix(name, ".rels") {
				a.budget.tokens -= bytes.Count(block[kept:kept+n], []byte("<"))
				b.uncomputed[name] = b.uncomputed[name] || hasFormula(block[:kept+n], noValue)
				b.zeros[name] = b.zeros[name] || hasFormula(block[:kept+n], zero)
				b.linked[name] = b.linked[name] || hasLinks(block[:kept+n])
				b.marked[name] = b.marked[name] || hasMarks(block[:kept+n])
				b.prompted[name] = b.prompted[name] || bytes.Contains(block[:kept+n], []byte("prompt"))
			}
			all := block[:kept+n]
			kept = copy(block, all[max(0, len(all)-longest):])
		}
		body.Close() //nolint:errcheck,gosec // read only
		if !errors.Is(err, io.EOF) {
			return err
		}
	}
	return a.budget.spent()
}

// readParts finds the parts of the sheets, whether their formulas are calculated, and the people who commented.
func (b *workbook) readParts(main string) error {
	b.sheets, b.people = map[string]string{}, map[string]string{}
	links, err := b.archive.relations(main)
	if err != nil {
		return err
	}
	err = b.archive.find(main, "sheet", func(_ *xmlReader, e element) error {
		b.sheets[e.attr("name")] = links[e.attr("r:id")].target
		return nil
	})
	if err != nil {
		return err
	}
	err = b.archive.find(main, "calcPr", func(_ *xmlReader, e element) error {
		b.uncalculated = e.attr("fullCalcOnLoad") == "1" || e.attr("fullCalcOnLoad") == "true"
		return nil
	})
	for _, link := range links {
		if err == nil && link.kind == "sharedStrings" {
			err = b.readStrings(link.target)
		}
		if err == nil && link.kind == "person" {
			err = b.archive.find(link.target, "person", func(_ *xmlReader, e element) error {
				b.people[e.attr("id")] = e.attr("displayName")
				return nil
			})
		}
	}
	return err
}

// write returns an error if the library panics on a workbook that it does not expect.
func (b *workbook) write(size int64, md *markdown) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("a sheet cannot be laid out: %v", p)
		}
	}()
	// With equal limits, the library unpacks nothing to temporary files.
	book, err := excelize.OpenReader(io.NewSectionReader(b.archive.source, 0, size), excelize.Options{
		UnzipSizeLimit: maxUnpackedBytes, UnzipXMLSizeLimit: maxUnpackedBytes, ShortDatePattern: "yyyy-mm-dd",
	})
	if err != nil {
		return err
	}
	defer book.Close() //nolint:errcheck // read only
	b.formats = mendFormats(book)
	s := &sheetWriter{md: md}
	for _, name := range book.GetSheetList() {
		if visible, err := book.GetSheetVisible(name); err != nil || !visible {
			md.budget.omitted.addAt(hiddenSheet, named("sheet", name), 1)
			continue
		}
		md.budget.omitted.at = named("sheet", name)
		if err := b.sheet(s, book, name); err != nil {
			return err
		}
	}
	s.flush()
	return nil
}

// sheet reads a sheet: its cells, then what is drawn on it, then its comments.
func (b *workbook) sheet(s *sheetWriter, book *excelize.File, name string) error {
	s.sheet(name)
	part := b.sheets[name]
	formulas, err := b.formulas(book, name, part)
	if err != nil {
		return err
	}
	links, err := b.archive.relations(part)
	if err != nil {
		return err
	}
	targets, err := b.sheetTargets(part, links)
	if err != nil {
		return err
	}
	marked, err := b.markedCells(part)
	if err != nil {
		return err
	}
	if err := b.cells(s, book, name, cellTexts{formulas, targets, marked}); err != nil {
		return err
	}
	b.archive.omitEmbedded(links, s.md.budget.omitted.at, map[string]bool{})
	drawn, err := b.drawn(links, func(reference string) []string { return b.cellsOf(book, reference) })
	if err != nil {
		return err
	}
	s.below(drawn)
	controls, err := b.controls(links)
	if err != nil {
		return err
	}
	s.below(controls)
	comments, err := b.comments(links)
	if err != nil {
		return err
	}
	s.below(comments)
	messages, err := b.inputMessages(part)
	s.below(messages)
	return err
}

// cellTexts is what the cells of a sheet have besides their values.
type cellTexts struct {
	formulas sheetFormulas // of cells without a value
	targets  sheetFormulas // addresses of links
	marked   map[int]map[int]markedText
}

// cells reads the cells of a sheet.
func (b *workbook) cells(s *sheetWriter, book *excelize.File, name string, texts cellTexts) error {
	rows, err := book.Rows(name)
	if err != nil {
		return nil //nolint:nilerr // the sheet of a chart or a macro has no rows
	}
	defer rows.Close() //nolint:errcheck // read only
	for n := 0; rows.Next(); n++ {
		columns, err := columnsOf(rows)
		if err != nil {
			return err
		}
		for i := range columns {
			columns[i] = b.shown(columns[i])
		}
		columns = withFormulas(withMarks(columns, texts.marked[n]), texts.formulas[n])
		columns = withTargets(columns, texts.targets[n])
		if err := s.row(columns); err != nil {
			return err
		}
	}
	return rows.Error()
}

// shown returns the text of a cell as Excel shows it. It notes a number that is hidden by its format.
func (b *workbook) shown(cell string) string {
	text := b.formats.shown(cell)
	if text == "" && cell != "" {
		b.archive.budget.omitted.add(hiddenText)
	}
	return text
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
