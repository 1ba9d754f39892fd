package document

import "encoding/xml"

func (d *docx) table(x *xmlReader, md *markdown) error {
	var rows []row
	err := d.rows(x, &rows)
	if err == nil {
		md.table(rows)
	}
	return err
}

func (d *docx) rows(x *xmlReader, rows *[]row) error {
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "w:tr":
			var r row
			deleted := false
			err := d.cells(x, &r, &deleted)
			if !deleted {
				*rows = append(*rows, r)
			}
			return err
		case "w:sdt", "w:sdtContent", "w:customXml", "w:ins":
			return d.rows(x, rows)
		}
		return nil
	}, nil)
}

func (d *docx) cells(x *xmlReader, r *row, deleted *bool) error {
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "w:trPr":
			return x.walk(func(e xml.StartElement) error {
				switch x.name(e) {
				case "w:del":
					*deleted = true
				case "w:gridBefore":
					r.add(d.budget, "", number(attr(e, "w:val"), 0))
				}
				return nil
			}, nil)
		case "w:tc":
			return d.cell(x, r)
		case "w:sdt", "w:sdtContent", "w:customXml":
			return d.cells(x, r, deleted)
		}
		return nil
	}, nil)
}

// cell is one of a row, and as many empty ones as it is wider. What is merged with the cell above is empty.
func (d *docx) cell(x *xmlReader, r *row) error {
	md, width, merged := newFlat(d.budget), 1, false
	err := x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "w:tcPr":
			return x.walk(func(e xml.StartElement) error {
				switch x.name(e) {
				case "w:gridSpan":
					width = number(attr(e, "w:val"), 1)
				case "w:vMerge":
					merged = attr(e, "w:val") != "restart"
				}
				return nil
			}, nil)
		case "w:p":
			return d.paragraph(x, md)
		case "w:tbl":
			return d.table(x, md)
		}
		return d.moreBlocks(x, md)
	}, nil)
	r.breaks += md.breaks
	text := md.text()
	if merged {
		text = ""
	}
	r.add(d.budget, text, 1)
	r.add(d.budget, "", width-1)
	return err
}
