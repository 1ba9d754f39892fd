package document

import (
	"io"
	"maps"
	"slices"
	"strings"
)

// DOCX reads a Word document: headings, numbered and other lists, tables, links, notes, comments, code (recognized by
// style or font), text boxes, charts and diagrams. Inserted text is included. Headers and footers follow at the end,
// each once. Deleted and hidden text and tables of contents are left out. If Word stored the page layout, pages begin
// where it says.
func DOCX(r io.ReaderAt, size int64) (Text, error) {
	return severalPages(readArchive(r, size, func(a *archive, md *markdown) error {
		main, err := a.mainPart("word/document.xml")
		if err != nil {
			return err
		}
		a.omitMacros()
		d := &docx{archive: a, budget: a.budget, notes: map[string]string{}, embedded: map[string]bool{}}
		if err := d.readParts(main); err != nil {
			return err
		}
		md.breaks = 1
		a.budget.omitted.followSections()
		d.beginPage()
		err = a.find(main, "w:body", func(x *xmlReader, _ element) error { return d.blocks(x, md) })
		if err == nil {
			err = d.writeFooters(md)
		}
		md.notes(d.cited)
		a.omitEmbedded(d.links, place{}, d.embedded)
		d.budget.omitted.settle(d.page > 1)
		return err
	}))
}

func (d *docx) readParts(main string) (err error) {
	links, err := d.archive.relations(main)
	if err != nil {
		return err
	}
	if d.styles, err = readWordStyles(d.archive, related(links, "styles", "word/styles.xml")); err != nil {
		return err
	}
	if d.lists, err = readWordLists(d.archive, related(links, "numbering", "word/numbering.xml")); err != nil {
		return err
	}
	for _, kind := range []string{"footnote", "endnote"} {
		part := related(links, kind+"s", "word/"+kind+"s.xml")
		if d.links, err = d.archive.relations(part); err != nil {
			return err
		}
		if err := d.readNotes(part, kind); err != nil {
			return err
		}
	}
	if err := d.readComments(related(links, "comments", "word/comments.xml")); err != nil {
		return err
	}
	d.links, d.numbers = links, map[string]int{}
	return nil
}

// readComments reads comments as notes.
func (d *docx) readComments(part string) (err error) {
	if d.links, err = d.archive.relations(part); err != nil {
		return err
	}
	return d.archive.find(part, "w:comment", func(x *xmlReader, e element) error {
		author, id, md := e.attr("w:author"), e.attr("w:id"), newFlat(d.budget)
		err := d.blocks(x, md)
		if text := md.text(); text != "" {
			d.notes["comment"+id] = commentText(author, "", text)
		}
		return err
	})
}

// writeFooters adds the texts of headers and footers, each once.
func (d *docx) writeFooters(md *markdown) error {
	links := d.links
	all := newFooters()
	d.budget.omitted.at = named("", "headers and footers")
	defer func() { d.links = links }()
	for _, kind := range []string{"header", "footer"} {
		for _, id := range slices.Sorted(maps.Keys(links)) {
			link := links[id]
			if link.kind != kind || link.external {
				continue
			}
			var err error
			if d.links, err = d.archive.relations(link.target); err != nil {
				return err
			}
			text := newFlat(d.budget)
			err = d.archive.optional(link.target, func(x *xmlReader) error {
				return x.each(func(element) error { return d.blocks(x, text) })
			})
			if err != nil {
				return err
			}
			all.add(strings.ToUpper(kind[:1])+kind[1:], text.oneLine())
		}
	}
	all.write(md)
	return nil
}

func (d *docx) readNotes(part, kind string) error {
	return d.archive.find(part, "w:"+kind, func(x *xmlReader, e element) error {
		md := newFlat(d.budget)
		err := d.blocks(x, md)
		if t := e.attr("w:type"); t == "" || t == "normal" {
			d.notes[kind+e.attr("w:id")] = md.text()
		}
		return err
	})
}

// blocks reads an element that contains paragraphs and tables.
func (d *docx) blocks(x *xmlReader, md *markdown) error {
	err := eachIn(x, func(e element) error { return d.block(x, e, md) })
	d.endParagraph(md)
	return err
}

// endParagraph writes a paragraph without end mark if no other paragraph follows.
func (d *docx) endParagraph(md *markdown) {
	if carried := d.carried; carried != nil {
		d.carried = nil
		md.paragraph(carried.markdown())
	}
}

func (d *docx) block(x *xmlReader, e element, md *markdown) error {
	switch e.name {
	case "w:p":
		return d.paragraph(x, md)
	case "w:tbl":
		d.endParagraph(md)
		return d.table(x, md)
	case "w:altChunk":
		d.endParagraph(md)
		return d.chunk(e.attr("r:id"), md)
	}
	return nil
}

func (d *docx) table(x *xmlReader, md *markdown) error {
	var rows []row
	err := eachIn(x, func(e element) error {
		switch e.name {
		case "w:tblPr":
			return x.tree(e, func(props *tree) {
				for _, name := range []string{"w:tblCaption", "w:tblDescription"} {
					md.paragraph(besideText(onOneLine(props.val(name)), d.said))
				}
			})
		case "w:tr":
		default:
			return nil
		}
		r, deleted := row{}, false
		err := eachIn(x, func(e element) error {
			switch e.name {
			case "w:trPr":
				return x.tree(e, func(props *tree) {
					deleted = props.at("w:del") != nil
					r.add(d.budget, "", number(props.val("w:gridBefore"), 0))
				})
			case "w:tc":
				return d.cell(x, &r)
			}
			return nil
		})
		if deleted {
			d.budget.omitted.add(deletedText)
		} else {
			rows = append(rows, r)
		}
		return err
	})
	if err == nil {
		md.table(rows)
	}
	return err
}

// cell adds a cell, and an empty cell for each further column that it spans. A cell that is merged with the one above
// is empty.
func (d *docx) cell(x *xmlReader, r *row) error {
	md, width, merged := newFlat(d.budget), 1, false
	err := eachIn(x, func(e element) error {
		if e.name != "w:tcPr" {
			return d.block(x, e, md)
		}
		return x.tree(e, func(props *tree) {
			width = number(props.val("w:gridSpan"), 1)
			merged = props.at("w:vMerge") != nil && props.val("w:vMerge") != "restart"
		})
	})
	d.endParagraph(md)
	r.breaks += md.breaks
	text := md.text()
	if merged {
		text = ""
	}
	r.add(d.budget, text, 1)
	r.add(d.budget, "", width-1)
	return err
}
