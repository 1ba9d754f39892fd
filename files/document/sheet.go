package document

import "strings"

// sheetWriter writes the rows of sheets. Each block of rows without an empty row in between becomes a table.
type sheetWriter struct {
	md     *markdown
	name   string
	begun  bool       // the sheet's heading is written
	rows   [][]string // rows of the current block
	lo, hi int        // columns of the block, hi excluded
	cells  int        // cells of all sheets, including empty ones
}

// maxSheetCells is how many cells a document's sheets may have together, counting empty cells before others.
const maxSheetCells = 10_000_000

// sheet ends the last sheet and begins a new one. A sheet without text gets no heading.
func (s *sheetWriter) sheet(name string) {
	s.flush()
	s.name, s.begun = name, false
}

// row adds the next row, with the empty cells before its last cell with text.
func (s *sheetWriter) row(cells []string) error {
	if s.cells += len(cells); s.cells > maxSheetCells {
		return unreadable("The sheets have more than %d million cells. Upload them as CSV, in parts.",
			maxSheetCells/1_000_000)
	}
	lo, hi := extent(cells)
	if lo == hi {
		s.flush()
		return nil
	}
	if len(s.rows) == 0 {
		s.lo, s.hi = lo, hi
	}
	s.lo, s.hi = min(s.lo, lo), max(s.hi, hi)
	s.rows = append(s.rows, append([]string(nil), cells[:hi]...))
	return s.md.budget.spent()
}

// extent returns the index of the first cell with text, and the index behind the last one.
func extent(cells []string) (lo, hi int) {
	for hi = len(cells); hi > 0 && isBlank(cells[hi-1]); hi-- { //nolint:revive // counts down
	}
	for lo = 0; lo < hi && isBlank(cells[lo]); lo++ { //nolint:revive // counts up
	}
	return lo, hi
}

// flush ends a block. The sheet's heading comes before its first block. A single cell above a table becomes the table's
// title. A block with one column is written as lines.
func (s *sheetWriter) flush() {
	rows := s.rows
	s.rows = nil
	if len(rows) == 0 {
		return
	}
	s.begin()
	for len(rows) > 0 && s.hi-s.lo > 1 && isSingle(rows[0]) {
		s.md.paragraph(rows[0][len(rows[0])-1])
		rows = rows[1:]
	}
	if s.hi-s.lo == 1 {
		lines := make([]string, len(rows))
		for i, r := range rows {
			lines[i] = r[len(r)-1]
		}
		s.md.paragraph(strings.Join(lines, "\n"))
		return
	}
	table := make([]row, len(rows))
	for i, r := range rows {
		table[i].cells = r[min(s.lo, len(r)):]
	}
	s.md.table(table)
}

// begin writes the sheet's heading, once.
func (s *sheetWriter) begin() {
	if !s.begun {
		s.begun = true
		s.md.breaks++
		s.md.heading(2, s.name)
	}
}

// below adds what a sheet has besides its cells.
func (s *sheetWriter) below(text string) {
	s.flush()
	if text != "" {
		s.begin()
		s.md.raw(text)
	}
}

// isSingle reports whether a row has exactly one cell with text.
func isSingle(cells []string) bool {
	lo, hi := extent(cells)
	return hi-lo == 1
}
