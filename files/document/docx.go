package document

import (
	"encoding/xml"
	"io"
	"strconv"
)

// DOCX reads a document of Word: headings, lists with their numbers, tables, links, notes, code by its style or font, text boxes.
// Inserted text is shown, deleted and hidden text is not; tables of contents, headers and footers are left out. Pages begin where Word
// last laid them out, if it did.
func DOCX(r io.ReaderAt, size int64) (Text, error) {
	text, err := readArchive(r, size, func(a *archive, md *markdown) error {
		main, err := a.mainPart("word/document.xml")
		if err != nil {
			return err
		}
		d := &docx{archive: a, budget: a.budget, notes: map[string]string{}}
		if err := d.readParts(main); err != nil {
			return err
		}
		md.breaks = 1
		if err := a.part(main, func(x *xmlReader) error {
			return x.find("w:body", func(xml.StartElement) error { return d.blocks(x, md) })
		}); err != nil {
			return err
		}
		d.writeNotes(md)
		return nil
	})
	if len(text.Pages) < 2 {
		text.Pages = nil
	}
	return text, err
}

type docx struct {
	archive *archive
	budget  *budget
	styles  wordStyles
	lists   *wordLists
	links   map[string]relation
	notes   map[string]string // texts by kind and id
	cited   []string          // in their order
	numbers map[string]int
	fields  []field
	carried *inline // of a paragraph whose end was deleted
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
		if err := d.archive.optional(part, func(x *xmlReader) error { return d.readNotes(x, kind) }); err != nil {
			return err
		}
	}
	d.links, d.numbers = links, map[string]int{}
	return nil
}

func (d *docx) readNotes(x *xmlReader, kind string) error {
	return x.find("w:"+kind, func(e xml.StartElement) error {
		md := newFlat(d.budget)
		err := d.blocks(x, md)
		if t := attr(e, "w:type"); t == "" || t == "normal" {
			d.notes[kind+attr(e, "w:id")] = md.text()
		}
		return err
	})
}

// cite is the mark of a note, and the same again where it is cited again.
func (d *docx) cite(key string) string {
	if d.numbers == nil || d.notes[key] == "" { // a note within a note
		return ""
	}
	if d.numbers[key] == 0 {
		d.cited = append(d.cited, key)
		d.numbers[key] = len(d.cited)
	}
	return "[^" + strconv.Itoa(d.numbers[key]) + "]"
}

func (d *docx) writeNotes(md *markdown) {
	for i, key := range d.cited {
		if i == 0 {
			md.last = otherBlock
		}
		md.note(strconv.Itoa(i+1), d.notes[key])
	}
}

// blocks reads what holds paragraphs and tables.
func (d *docx) blocks(x *xmlReader, md *markdown) error {
	err := d.moreBlocks(x, md)
	if carried := d.carried; carried != nil {
		d.carried = nil
		md.paragraph(carried.markdown())
	}
	return err
}

func (d *docx) moreBlocks(x *xmlReader, md *markdown) error {
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "w:p":
			return d.paragraph(x, md)
		case "w:tbl":
			return d.table(x, md)
		case "w:sdt", "w:sdtContent", "w:ins", "w:moveTo", "w:customXml", "mc:AlternateContent", "mc:Choice":
			return d.moreBlocks(x, md)
		}
		return nil
	}, nil)
}
