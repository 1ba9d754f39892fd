package document

import (
	"bytes"
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"
)

// workbook is the state of reading a workbook.
type workbook struct {
	archive    *archive
	sheets     map[string]string // name → part
	people     map[string]string // who wrote threaded comments, by id
	uncomputed map[string]bool   // parts of sheets with formulas whose values are not stored
	formats    *sheetFormats
	zeros      map[string]bool    // parts of sheets with formulas whose values are zero
	linked     map[string]bool    // parts of sheets with links
	marked     map[string]bool    // parts that may have struck or raised text
	prompted   map[string]bool    // parts that may have messages for who fills in a cell
	strings    map[int]markedText // shared strings with such text, by their index

	uncalculated bool // the workbook is to be calculated when it is opened, because its program did not: zeros say nothing
}

// Limits of formulas without a value.
const (
	maxFormulas     = 200_000 // of a sheet
	maxFormulaBytes = 8192    // as in Excel
	maxShared       = 1000    // of a sheet, those that are written as another one's
)

// sheetFormulas are formulas by row, then by column, both from 0.
type sheetFormulas map[int]map[int]string

// formulas returns the formulas of a sheet's cells that have no value.
func (b *workbook) formulas(book *excelize.File, name, part string) (sheetFormulas, error) {
	if isStored := !b.uncalculated || !b.zeros[part]; isStored && !b.uncomputed[part] {
		return nil, nil //nolint:nilnil // there are none
	}
	all, count, shared := sheetFormulas{}, 0, 0
	err := b.archive.find(part, "c", func(x *xmlReader, e element) error {
		formula, value, isFormula := "", "", false
		err := x.each(func(e element) (err error) {
			switch e.name {
			case "f":
				isFormula = true
				formula, err = x.text()
			case "v", "is":
				value, err = x.text()
			}
			return err
		})
		column, row, unknown := excelize.CellNameToCoordinates(e.attr("r"))
		isKnown := value != "" && (value != "0" || !b.uncalculated)
		if err != nil || !isFormula || isKnown || unknown != nil || count >= maxFormulas {
			return err
		}
		if formula == "" && shared < maxShared {
			shared++
			formula, _ = book.GetCellFormula(name, e.attr("r")) // without one, the cell stays empty
		}
		formula = strings.TrimSpace(formula)
		if formula != "" && len(formula) <= maxFormulaBytes && b.archive.budget.handle(len(formula)) {
			if count++; all[row-1] == nil {
				all[row-1] = map[int]string{}
			}
			all[row-1][column-1] = cmp.Or(linkLabel(formula), "="+strings.TrimPrefix(formula, "="))
		}
		return nil
	})
	return all, err
}

// linkLabel returns what a formula shows that makes a link; nothing if it computes that.
func linkLabel(formula string) string {
	if m := labelledLink.FindStringSubmatch(formula); m != nil {
		return cmp.Or(strings.ReplaceAll(m[2], `""`, `"`), m[1])
	}
	return ""
}

var labelledLink = regexp.MustCompile(`^=?\s*HYPERLINK\(\s*"([^"]+)"\s*(?:,\s*"((?:[^"]|"")*)"\s*)?\)$`)

// withFormulas returns a row of cells with the formulas of those that have no value.
func withFormulas(cells []string, formulas map[int]string) []string {
	for column, formula := range formulas {
		for len(cells) <= column {
			cells = append(cells, "")
		}
		cells[column] = formula
	}
	return cells
}

// cellsOf returns the values of a range such as Sales!$B$2:$B$9, or of several ranges in brackets. It returns none for
// anything else.
func (b *workbook) cellsOf(book *excelize.File, reference string) (values []string) {
	for one := range strings.SplitSeq(strings.Trim(reference, "()"), ",") {
		mark := strings.LastIndexByte(one, '!')
		if mark < 0 {
			return nil
		}
		name := strings.ReplaceAll(strings.Trim(one[:mark], "'"), "''", "'")
		from, to, isRange := strings.Cut(strings.ReplaceAll(one[mark+1:], "$", ""), ":")
		if !isRange {
			to = from
		}
		left, top, err := excelize.CellNameToCoordinates(from)
		right, bottom, end := excelize.CellNameToCoordinates(to)
		if err != nil || end != nil || (right-left+1)*(bottom-top+1) > maxPoints {
			return nil
		}
		for row := top; row <= bottom; row++ {
			for column := left; column <= right; column++ {
				cell, _ := excelize.CoordinatesToCellName(column, row) // they come from a cell's name
				value, _ := book.GetCellValue(name, cell)              // without a value it is empty
				values = append(values, b.formats.shown(value))
			}
		}
	}
	return values
}

// markedText is the text of a cell with struck or raised parts: as it is stored, and with Markdown's marks.
type markedText struct{ plain, marked string }

// maxMarked is how many marked shared strings a workbook may have, and how many marked cells a sheet. Further ones are
// read without marks.
const maxMarked = 100_000

// hasMarks reports whether a piece of a part may have struck or raised text.
func hasMarks(piece []byte) bool {
	return bytes.Contains(piece, []byte("strike")) || bytes.Contains(piece, []byte("vertAlign"))
}

// readStrings reads the shared strings with struck or raised parts.
func (b *workbook) readStrings(part string) error {
	b.strings = map[int]markedText{}
	if !b.marked[part] {
		return nil
	}
	index := 0
	return b.archive.find(part, "si", func(x *xmlReader, _ element) error {
		text, err := b.runs(x)
		if text.marked != text.plain && len(b.strings) < maxMarked {
			b.strings[index] = text
		}
		index++
		return err
	})
}

// runs reads the runs of a shared string or of a cell's own text.
func (b *workbook) runs(x *xmlReader) (markedText, error) {
	in := &inline{budget: b.archive.budget}
	err := x.each(func(e element) error {
		var s style
		switch e.name {
		case "t":
			return addCellText(x, in, s)
		case "r":
			return x.each(func(e element) error {
				switch e.name {
				case "rPr":
					return x.each(func(e element) error {
						value := e.attr("val")
						s.struck = s.struck || e.name == "strike" && value != "0" && value != "false"
						s.raised = s.raised || e.name == "vertAlign" && value == "superscript"
						return nil
					})
				case "t":
					return addCellText(x, in, s)
				}
				return nil
			})
		}
		return nil
	})
	return markedText{in.plain(), in.markdown()}, err
}

// addCellText adds a text, and marks each of its lines by itself.
func addCellText(x *xmlReader, in *inline, s style) error {
	text, err := x.text()
	for line := range strings.Lines(numberedCharacters(text)) {
		words := strings.TrimRight(line, "\r\n")
		in.add(words, s)
		in.add(line[len(words):], style{})
	}
	return err
}

// numberedCharacters returns a text with the characters that Excel writes as their numbers, such as _x000D_.
func numberedCharacters(text string) string {
	return characterNumber.ReplaceAllStringFunc(text, func(s string) string {
		code, _ := strconv.ParseInt(s[2:6], 16, 32) // the pattern has only such digits
		return string(rune(code))                   // it has 16 bits
	})
}

var characterNumber = regexp.MustCompile(`_x[0-9A-Fa-f]{4}_`)

// markedCells returns the texts of a sheet's cells with struck or raised parts, by row, then by column, both from 0.
func (b *workbook) markedCells(part string) (map[int]map[int]markedText, error) {
	if len(b.strings) == 0 && !b.marked[part] {
		return nil, nil //nolint:nilnil // there are none
	}
	all, row, count := map[int]map[int]markedText{}, 0, 0
	return all, b.archive.find(part, "row", func(x *xmlReader, e element) error {
		row = number(e.attr("r"), row+1)
		column := 0
		return x.each(func(e element) error {
			column++
			if at, _, err := excelize.CellNameToCoordinates(e.attr("r")); err == nil {
				column = at
			}
			text, err := b.markedCell(x, e)
			if text.marked != text.plain && count < maxMarked {
				if count++; all[row-1] == nil {
					all[row-1] = map[int]markedText{}
				}
				all[row-1][column-1] = text
			}
			return err
		})
	})
}

// markedCell reads a cell, and returns its text if that may have marks.
func (b *workbook) markedCell(x *xmlReader, cell element) (text markedText, err error) {
	kind := cell.attr("t")
	if kind != "s" && kind != "inlineStr" {
		return text, nil
	}
	return text, x.each(func(e element) (err error) {
		switch {
		case kind == "inlineStr" && e.name == "is":
			text, err = b.runs(x)
		case kind == "s" && e.name == "v":
			var index string
			index, err = x.text()
			text = b.strings[number(strings.TrimSpace(index), -1)]
		}
		return err
	})
}

// withMarks returns a row of cells with the marks of their texts. A text that is not shown stays so.
func withMarks(cells []string, texts map[int]markedText) []string {
	for column, text := range texts {
		if column < len(cells) && text.plain != "" {
			cells[column] = strings.Replace(cells[column], text.plain, text.marked, 1)
		}
	}
	return cells
}
