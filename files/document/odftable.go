package document

// odfRows reads the rows of a table. put is called with a row and how often it is repeated.
type odfRows struct {
	*odf

	put func(r row, times int) error
}

func (o *odf) table(x *xmlReader, md *markdown) error {
	var rows []row
	err := odfRows{o, func(r row, times int) error {
		for range times {
			if !o.budget.handle(len(r.cells) * 16) {
				return o.budget.spent()
			}
			rows = append(rows, r)
		}
		return nil
	}}.read(x)
	if err == nil {
		md.table(rows)
	}
	return err
}

func (t odfRows) read(x *xmlReader) error {
	return x.each(func(e element) error {
		switch e.name {
		case "table:table-row":
			r, err := t.row(x)
			if err != nil {
				return err
			}
			times := max(number(e.attr("table:number-rows-repeated"), 1), 1)
			if len(r.cells) == 0 {
				times = 1
			}
			return t.put(r, times)
		case "table:table-header-rows", "table:table-rows", "table:table-row-group":
			return t.read(x)
		}
		return nil
	})
}

// row reads the cells up to the last full one: the empty ones after it may be repeated up to the sheet's edge.
func (t odfRows) row(x *xmlReader) (r row, err error) {
	empty := 0
	return r, x.each(func(e element) error {
		times := max(number(e.attr("table:number-columns-repeated"), 1), 1)
		text := ""
		switch e.name {
		case "table:table-cell":
			md := newFlat(t.budget)
			if err := t.blocks(x, md); err != nil {
				return err
			}
			r.breaks += md.breaks
			text = md.text()
		case "table:covered-table-cell":
		default:
			return nil
		}
		if isBlank(text) {
			empty = min(empty+times, maxColumns)
			return nil
		}
		r.add(t.budget, "", empty)
		r.add(t.budget, text, times)
		empty = 0
		return nil
	})
}

// sheets reads the sheets that are not hidden.
func (o *odf) sheets(x *xmlReader, md *markdown) error {
	cells := 0
	return x.each(func(e element) error {
		if e.name != "table:table" || o.style("table", e.attr("table:style-name")).hidden {
			return nil
		}
		s := &sheetWriter{md: md, name: e.attr("table:name"), cells: cells}
		err := odfRows{o, func(r row, times int) error {
			for range times {
				if err := s.row(r.cells); err != nil {
					return err
				}
			}
			return nil
		}}.read(x)
		s.flush()
		cells = s.cells
		return err
	})
}
