package document

import (
	"cmp"
	"regexp"
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
	zeros      map[string]bool // parts of sheets with formulas whose values are zero
	linked     map[string]bool // parts of sheets with links

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
