package document

import (
	"io"
	"strings"
)

// ODT reads an OpenDocument text: headings, numbered and other lists, tables, links, notes, code (recognized by style
// or font), text boxes and formulas. Deleted and hidden text, comments and tables of contents are left out. If the
// document stores the page layout, pages begin where it says.
func ODT(r io.ReaderAt, size int64) (Text, error) {
	return severalPages(readODF(r, size, "office:text", func(o *odf, x *xmlReader, e element, md *markdown) error {
		if o.paged = e.attr("text:use-soft-page-breaks") == "true"; o.paged {
			md.breaks = 1
		}
		return o.blocks(x, md)
	}))
}

// ODS reads an OpenDocument spreadsheet, as XLSX does.
func ODS(r io.ReaderAt, size int64) (Text, error) {
	return readODF(r, size, "office:spreadsheet", (*odf).sheets)
}

// ODP reads an OpenDocument presentation, as PPTX does.
func ODP(r io.ReaderAt, size int64) (Text, error) {
	return readODF(r, size, "office:presentation", (*odf).slides)
}

type odfBodyReader = func(*odf, *xmlReader, element, *markdown) error

func readODF(r io.ReaderAt, size int64, body string, read odfBodyReader) (Text, error) {
	return readArchive(r, size, func(a *archive, md *markdown) error {
		if err := a.refuseEncryptedODF(); err != nil {
			return err
		}
		if !a.has("content.xml") {
			return errNotThatFormat
		}
		o := &odf{archive: a, budget: a.budget, styles: blockStyles{}, lists: map[string]*abstractList{},
			outline: &abstractList{}}
		if err := a.optional("styles.xml", o.readStyles); err != nil {
			return err
		}
		err := a.part("content.xml", func(x *xmlReader) error {
			return x.each(func(element) error {
				return x.each(func(e element) error {
					if e.name != "office:body" {
						return o.readStyle(x, e)
					}
					return x.find(body, func(e element) error { return read(o, x, e, md) })
				})
			})
		})
		md.notes(o.notes)
		return err
	})
}

// refuseEncryptedODF returns errProtected if the list of parts says that the document is encrypted.
func (a *archive) refuseEncryptedODF() error {
	if a.has("encrypted-package") {
		return errProtected
	}
	return a.find("META-INF/manifest.xml", "manifest:encryption-data",
		func(*xmlReader, element) error { return errProtected })
}

// blocks reads an element that contains paragraphs, lists and tables.
func (o *odf) blocks(x *xmlReader, md *markdown) error {
	return x.each(func(e element) error { return o.block(x, e, md) })
}

func (o *odf) block(x *xmlReader, e element, md *markdown) error {
	switch e.name {
	case "text:h":
		return o.heading(x, e, md)
	case "text:p":
		return o.paragraph(x, e, md, o.write)
	case "text:list":
		return o.list(x, e, md, nil)
	case "table:table":
		return o.table(x, md)
	case "text:soft-page-break":
		o.pageBreak(md)
	case "text:tracked-changes", "text:table-of-content", "text:alphabetical-index", "text:illustration-index",
		"text:table-index", "text:object-index", "text:user-index", "office:annotation", "office:forms",
		"presentation:notes":
		return o.omit(x, e)
	default:
		return o.blocks(x, md)
	}
	return nil
}

func (o *odf) pageBreak(md *markdown) {
	if o.paged {
		md.breaks++
	}
}

func (o *odf) heading(x *xmlReader, e element, md *markdown) error {
	level := min(max(number(e.attr("text:outline-level"), 1), 1), maxListLevels)
	return o.paragraph(x, e, md, func(md *markdown, _ blockStyle, text *inline) {
		b := block{heading: level}
		if o.outline.levels[level-1].format != "" && e.attr("text:is-list-header") != "true" && !text.isEmpty() {
			o.outline.count(level - 1)
			b.label = o.outline.label(level - 1)
		}
		md.put(b, text)
	})
}

type odfParagraphWriter = func(*markdown, blockStyle, *inline)

// paragraph reads a paragraph's text, calls write with it, and adds the text boxes in it.
func (o *odf) paragraph(x *xmlReader, e element, md *markdown, write odfParagraphWriter) error {
	s := o.style("paragraph", e.attr("text:style-name"))
	if s.newPage && md.lines > 0 {
		o.pageBreak(md)
	}
	p := &odfParagraph{text: &inline{budget: o.budget}, boxes: newMarkdown(o.budget)}
	if err := o.inlines(x, p, style{}); err != nil {
		return err
	}
	write(md, s, p.text)
	for range p.breaks {
		o.pageBreak(md)
	}
	md.embed(p.boxes)
	return nil
}

// write adds a paragraph in its style.
func (o *odf) write(md *markdown, s blockStyle, text *inline) {
	b := block{code: (s.code || text.isCode()) && !md.flat, quote: s.quote}
	if s.title {
		b.heading = 1
	}
	if !s.hidden {
		md.put(b, text)
	}
}

type odfParagraph struct {
	text   *inline
	boxes  *markdown
	breaks int
}

// inlines reads text and the elements within it.
func (o *odf) inlines(x *xmlReader, p *odfParagraph, s style) error {
	return x.walk(func(e element) error {
		switch e.name {
		case "text:span":
			look := o.style("text", e.attr("text:style-name"))
			if look.hidden {
				o.budget.omitted.add(hiddenText)
				return nil
			}
			return o.inlines(x, p, s.with(look.style))
		case "text:a":
			linked := s
			linked.href = e.attr("xlink:href")
			return o.inlines(x, p, linked)
		case "text:s":
			p.text.add(strings.Repeat(" ", min(max(number(e.attr("text:c"), 1), 1), 100)), s)
		case "text:tab":
			p.text.add("\t", s)
		case "text:line-break":
			p.text.add("\n", s)
		case "text:soft-page-break":
			p.breaks++
		case "text:note":
			return o.note(x, p.text)
		case "office:annotation", "text:hidden-text", "text:ruby-text", "office:event-listeners":
			return o.omit(x, e)
		case "draw:frame", "draw:custom-shape", "draw:rect", "draw:g", "draw:ellipse", "draw:line":
			return o.drawing(x, p)
		default:
			return o.inlines(x, p, s)
		}
		return nil
	}, func(text string) { p.text.addWords(text, s) })
}

// note keeps a note's text for the end, and adds its mark. A note within a note gets no mark.
func (o *odf) note(x *xmlReader, in *inline) error {
	return x.find("text:note-body", func(element) error {
		md := newFlat(o.budget)
		o.depth++
		err := o.blocks(x, md)
		o.depth--
		if text := md.text(); text != "" && o.depth == 0 {
			o.notes = append(o.notes, text)
			in.add(noteMark(len(o.notes)), style{})
		}
		return err
	})
}

// drawing reads the text boxes and formulas in a drawing.
func (o *odf) drawing(x *xmlReader, p *odfParagraph) error {
	return x.each(func(e element) error {
		switch e.name {
		case "draw:text-box":
			return o.blocks(x, p.boxes)
		case "text:p", "text:h", "text:list", "table:table":
			return o.block(x, e, p.boxes)
		case "draw:object":
			return o.formula(e.attr("xlink:href"), p.text)
		}
		return o.drawing(x, p)
	})
}

// omit notes an element that is left out.
func (o *odf) omit(x *xmlReader, e element) error {
	switch e.name {
	case "office:annotation":
		o.budget.omitted.add(comment)
	case "text:hidden-text":
		o.budget.omitted.add(hiddenText)
	case "text:tracked-changes":
		return x.find("text:deletion", func(element) error {
			o.budget.omitted.add(deletedText)
			return nil
		})
	case "text:table-of-content", "text:alphabetical-index", "text:illustration-index", "text:table-index",
		"text:object-index", "text:user-index":
		o.budget.omitted.add(tableContents)
	}
	return nil
}

// formula adds a formula, which is a separate document.
func (o *odf) formula(href string, in *inline) error {
	return o.archive.find(resolve("", href+"/content.xml"), "math",
		func(x *xmlReader, _ element) error { return formula(x, in) })
}
