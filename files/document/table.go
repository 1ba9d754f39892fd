package document

import (
	"slices"
	"strings"
)

// row is a row of a table.
type row struct {
	cells  []string
	breaks int // number of pages that begin in the row
}

// table adds a table. Its first row is the head. A table with one cell is only a box around text, and is written as
// text.
func (m *markdown) table(rows []row) {
	rows, breaks, width := trimRows(rows)
	defer func() { m.breaks += breaks }()
	switch {
	case len(rows) == 0:
		return
	case m.flat:
		for _, r := range rows {
			m.paragraph(strings.Join(slices.DeleteFunc(r.cells, isBlank), "; "))
		}
		return
	case len(rows) == 1 && width == 1:
		m.breaks += rows[0].breaks
		m.paragraph(rows[0].cells[0])
		return
	}
	head := rows[0].cells
	for len(head) < width {
		head = append(head, "")
	}
	m.breaks += rows[0].breaks
	m.write(otherBlock, tableLine(head))
	m.line("|" + strings.Repeat(" --- |", width))
	for _, r := range rows[1:] {
		if m.full {
			return
		}
		m.breaks += r.breaks
		m.beginPages()
		m.line(tableLine(r.cells))
	}
}

// trimRows drops empty rows, and empty cells at the ends of rows. It returns the number of pages that begin in the rows
// dropped at the end, and the width of the widest row.
func trimRows(rows []row) (kept []row, breaks, width int) {
	for _, r := range rows {
		r.breaks += breaks
		for len(r.cells) > 0 && isBlank(r.cells[len(r.cells)-1]) {
			r.cells = r.cells[:len(r.cells)-1]
		}
		if breaks = r.breaks; len(r.cells) > 0 {
			kept, breaks, width = append(kept, r), 0, max(width, len(r.cells))
		}
	}
	return kept, breaks, width
}

var cellEscapes = strings.NewReplacer("|", `\|`, "\r\n", "<br>", "\n", "<br>", "\r", "<br>")

func tableLine(cells []string) string {
	var b strings.Builder
	b.WriteString("|")
	for _, cell := range cells {
		if cell = cellEscapes.Replace(trimLines(cell)); cell != "" {
			b.WriteString(" " + cell)
		}
		b.WriteString(" |")
	}
	return b.String()
}

// add adds a cell n times.
func (r *row) add(b *budget, text string, n int) {
	for range min(n, maxColumns) {
		if !b.handle(len(text) + 16) {
			return
		}
		r.cells = append(r.cells, text)
	}
}
