package document

import (
	"regexp"
	"strconv"
	"strings"
)

func (o *odf) table(x *xmlReader, md *markdown) error {
	var rows []row
	err := o.rows(x, func(r row) error {
		rows = append(rows, r)
		o.budget.handle(len(r.cells) * 16)
		return o.budget.spent()
	})
	if err == nil {
		md.table(rows)
	}
	return err
}

// rows reads the rows of a table and calls put for each. For a repeated row it calls put repeatedly.
func (o *odf) rows(x *xmlReader, put func(row) error) error {
	return x.each(func(e element) error {
		switch e.name {
		case "table:table-row":
			return o.rowOf(x, e, put)
		case "table:table-header-rows", "table:table-rows", "table:table-row-group":
			return o.rows(x, put)
		}
		return nil
	})
}

// sheetParts reads the rows of a sheet, and what is drawn on it outside of cells.
func (o *odf) sheetParts(x *xmlReader, drawn *markdown, put func(row) error) error {
	return x.each(func(e element) error {
		switch e.name {
		case "table:shapes":
			p := &odfParagraph{text: &inline{budget: o.budget}, boxes: drawn}
			err := o.drawing(x, p)
			drawn.paragraph(p.text.markdown())
			return err
		case "office:forms":
			return o.forms(x)
		case "table:table-row":
			return o.rowOf(x, e, put)
		case "table:table-header-rows", "table:table-rows", "table:table-row-group":
			return o.sheetParts(x, drawn, put)
		}
		return nil
	})
}

// rowOf reads a row and calls put for it, repeatedly if it is repeated.
func (o *odf) rowOf(x *xmlReader, e element, put func(row) error) error {
	o.column = 0
	r, err := o.cells(x)
	times := max(number(e.attr("table:number-rows-repeated"), 1), 1)
	if o.row += times; len(r.cells) == 0 {
		times = 1
	}
	for ; times > 0 && err == nil; times-- {
		err = put(r)
	}
	return err
}

// cells reads the cells of a row up to the last one with text. The empty cells after it may be repeated up to the edge
// of the sheet.
func (o *odf) cells(x *xmlReader) (r row, err error) {
	empty := 0
	return r, x.each(func(e element) error {
		times := max(number(e.attr("table:number-columns-repeated"), 1), 1)
		defer func() { o.column += times }()
		text := ""
		switch e.name {
		case "table:table-cell":
			md, isShown := newFlat(o.budget), false
			err := x.each(func(within element) error {
				isShown = isShown || strings.HasPrefix(within.name, "text:")
				return o.block(x, within, md)
			})
			if err != nil {
				return err
			}
			r.breaks += md.breaks
			if text = md.text(); !isShown && o.isSheet {
				text = storedValue(e)
			}
		case "table:covered-table-cell":
			md := newFlat(o.budget)
			if err := o.blocks(x, md); err != nil {
				return err
			}
			if !isBlank(md.text()) {
				o.budget.omitted.add(hiddenText)
			}
		default:
			return nil
		}
		if isBlank(text) {
			empty = min(empty+times, maxColumns)
			return nil
		}
		r.add(o.budget, "", empty)
		r.add(o.budget, text, times)
		empty = 0
		return nil
	})
}

// storedValue returns the value of a sheet's cell for which no text is stored, or the cell's formula if it has no value
// either.
func storedValue(cell element) string {
	value := func(name string) string { return cell.attr("office:" + name) }
	kind := value("value-type")
	switch kind {
	case "date":
		return strings.Replace(strings.TrimSuffix(value("date-value"), "T00:00:00"), "T", " ", 1)
	case "time":
		if m := duration.FindStringSubmatch(value("time-value")); m != nil {
			return m[1] + ":" + m[2] + ":" + m[3]
		}
		return value("time-value")
	case "boolean":
		return strings.ToUpper(value("boolean-value"))
	case "string":
		return value("string-value")
	case "percentage":
		if share, err := strconv.ParseFloat(value("value"), 64); err == nil {
			return strconv.FormatFloat(share*100, 'g', 15, 64) + "%"
		}
	case "currency":
		return strings.TrimSpace(value("value") + " " + value("currency"))
	}
	if _, formula, ok := strings.Cut(cell.attr("table:formula"), "="); ok && kind == "" {
		return "=" + formula
	}
	return value("value")
}

// duration matches hours, minutes and whole seconds as PT02H30M00S.
var duration = regexp.MustCompile(`^PT(\d+)H(\d+)M(\d+)(?:[.,]\d+)?S$`)

// sheets reads the sheets that are not hidden.
func (o *odf) sheets(x *xmlReader, _ element, md *markdown) error {
	s := &sheetWriter{md: md}
	err := x.each(func(e element) error {
		if e.name != "table:table" {
			return nil
		}
		if o.style("table", e.attr("table:style-name")).hidden {
			o.budget.omitted.addAt(hiddenSheet, named("sheet", e.attr("table:name")), 1)
			return nil
		}
		o.budget.omitted.at = named("sheet", e.attr("table:name"))
		s.sheet(e.attr("table:name"))
		o.isSheet, o.row = true, 0
		drawn := newMarkdown(o.budget)
		o.drawn = drawn
		err := o.sheetParts(x, drawn, func(r row) error { return s.row(r.cells) })
		s.below(drawn.text())
		s.below(strings.Join(o.comments, "\n\n"))
		o.comments = nil
		return err
	})
	s.flush()
	return err
}
