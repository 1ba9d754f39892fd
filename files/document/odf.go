package document

import (
	"cmp"
	"io"
	"strings"

	"github.com/xuri/excelize/v2"
)

// ODT reads an OpenDocument text: headings, numbered and other lists, tables, links, notes, comments, code (recognized
// by style or font), text boxes, charts and formulas. Headers and footers follow at the end, each once. Deleted and
// hidden text and tables of contents are left out. If the document stores the page layout, pages begin where it says.
func ODT(r io.ReaderAt, size int64) (Text, error) {
	return severalPages(readODF(r, size, "office:text", func(o *odf, x *xmlReader, e element, md *markdown) error {
		if o.paged = e.attr("text:use-soft-page-breaks") == "true"; o.paged {
			md.breaks = 1
		}
		o.budget.omitted.followSections()
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
		if err == nil && body == "office:text" {
			err = o.writeFooters(md)
			o.budget.omitted.settle(false)
		}
		for _, text := range o.comments {
			md.paragraph(text)
		}
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
	case "text:section":
		if e.attr("text:display") == "none" {
			o.budget.omitted.add(hiddenText)
			return nil
		}
		return o.blocks(x, md)
	case "office:annotation":
		text, err := o.comment(x)
		o.comments = append(o.comments, text)
		return err
	case "draw:frame":
		if o.drawn != nil {
			md = o.drawn
		}
		p := &odfParagraph{text: &inline{budget: o.budget}, boxes: md}
		err := o.frame(x, p)
		md.paragraph(p.text.markdown())
		return err
	case "draw:custom-shape", "draw:rect", "draw:g", "draw:ellipse", "draw:line", "draw:caption":
		if o.drawn != nil {
			md = o.drawn
		}
		return o.blocks(x, md)
	case "text:tracked-changes", "text:table-of-content", "text:alphabetical-index", "text:illustration-index",
		"text:table-index", "text:object-index", "text:user-index", "presentation:notes":
		return o.omit(x, e)
	case "office:forms":
		return o.forms(x)
	case "draw:control":
		md.paragraph(o.control(e))
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
	switch {
	case !s.hidden:
		md.put(b, text)
	case !text.isEmpty():
		o.budget.omitted.add(hiddenText)
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
		case "office:annotation":
			text, err := o.comment(x)
			if o.isSheet {
				o.comments = append(o.comments, text)
			} else if o.depth == 0 {
				o.notes = append(o.notes, text)
				p.text.add(noteMark(len(o.notes)), style{})
			}
			return err
		case "draw:frame":
			return o.frame(x, p)
		case "text:hidden-text", "text:ruby-text", "office:event-listeners":
			return o.omit(x, e)
		case "draw:custom-shape", "draw:rect", "draw:g", "draw:ellipse", "draw:line":
			return o.drawing(x, p)
		case "draw:control":
			p.text.add(o.control(e), s)
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
		case "draw:frame":
			return o.frame(x, p)
		case "draw:control":
			p.boxes.paragraph(o.control(e))
			return nil
		}
		return o.drawing(x, p)
	})
}

// frame reads a frame: a text box, a formula, a chart, or the alternative text of a picture. It notes a picture without
// such a text, and any other object. An object has a picture of itself.
func (o *odf) frame(x *xmlReader, p *odfParagraph) error {
	object, isPicture, hasTable, alternative, part := "", false, false, "", ""
	err := x.each(func(e element) error {
		switch e.name {
		case "draw:text-box":
			return o.blocks(x, p.boxes)
		case "table:table":
			hasTable = true
			return o.block(x, e, p.boxes)
		case "draw:object", "draw:object-ole":
			object = cmp.Or(e.attr("xlink:href"), "object")
		case "draw:image":
			isPicture, part = true, cmp.Or(part, resolve("", e.attr("xlink:href")))
		case "draw:plugin":
			o.budget.omitted.add(media)
		case "svg:title", "svg:desc":
			text, err := x.text()
			if text = onOneLine(text); text != "" && !pictureFile.MatchString(text) {
				alternative = text // the description follows the title
			}
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	switch shown := pictureText(alternative); {
	case object != "":
		return o.object(object, p)
	case hasTable: // it has a picture of itself
	case isPicture:
		p.text.add(shown+o.budget.omitted.picture(picturePart(part), shown != ""), style{})
	}
	return nil
}

// object adds a formula or a chart, which are separate documents. It notes any other object.
func (o *odf) object(href string, p *odfParagraph) error {
	part, isKnown := resolve("", href+"/content.xml"), false
	err := o.archive.optional(part, func(x *xmlReader) error {
		return x.each(func(e element) error {
			if e.name == "math" {
				isKnown = true
				return formula(x, p.text)
			}
			return x.find("chart:chart", func(element) error {
				isKnown = true
				return o.chart(x, p.boxes)
			})
		})
	})
	if !isKnown {
		o.budget.omitted.add("embedded object")
	}
	return err
}

// chart adds a chart as its title, its axes and a table of its values.
func (o *odf) chart(x *xmlReader, md *markdown) error {
	title, axes := "", []string{}
	values := newMarkdown(o.budget)
	text := func() (string, error) {
		md := newFlat(o.budget)
		err := o.blocks(x, md)
		return md.oneLine(), err
	}
	var read func() error
	read = func() error {
		return x.each(func(e element) (err error) {
			switch e.name {
			case "chart:title", "chart:subtitle":
				var line string
				line, err = text()
				title = strings.TrimSpace(title + " " + line)
				return err
			case "chart:axis":
				return x.find("chart:title", func(element) error {
					axis, err := text()
					if axis != "" {
						axes = append(axes, axis)
					}
					return err
				})
			case "table:table":
				return o.chartTable(x, values)
			}
			return read()
		})
	}
	err := read()
	md.paragraph(chartHeading(title, axes))
	md.embed(values)
	return err
}

// chartTable adds the values of a chart. A value that is missing is NaN in the document.
func (o *odf) chartTable(x *xmlReader, md *markdown) error {
	var rows []row
	err := o.rows(x, func(r row) error {
		for i, cell := range r.cells {
			if cell == "NaN" {
				r.cells[i] = ""
			}
		}
		rows = append(rows, r)
		return o.budget.spent()
	})
	md.table(rows)
	return err
}

// comment returns the text of a comment, with its author and its cell.
func (o *odf) comment(x *xmlReader) (string, error) {
	author, at, md := "", "", newFlat(o.budget)
	if o.isSheet {
		at, _ = excelize.CoordinatesToCellName(min(o.column, maxColumns-1)+1, min(o.row, 1<<20-1)+1) // they are in range
	}
	o.depth++
	err := x.each(func(e element) error {
		switch e.name {
		case "creator":
			text, err := x.text()
			author = text
			return err
		case "text:p", "text:list":
			return o.block(x, e, md)
		}
		return nil
	})
	o.depth--
	return commentText(author, at, md.text()), err
}

// writeFooters adds the headers and footers of the document's pages, each once.
func (o *odf) writeFooters(md *markdown) error {
	all := newFooters()
	o.budget.omitted.at = named("", "headers and footers")
	kinds := map[string]string{"style:header": "Header", "style:footer": "Footer", "style:header-left": "Header",
		"style:footer-left": "Footer", "style:header-first": "Header", "style:footer-first": "Footer"}
	err := o.archive.find("styles.xml", "style:master-page", func(x *xmlReader, _ element) error {
		return x.each(func(e element) error {
			if kinds[e.name] == "" {
				return nil
			}
			text := newFlat(o.budget)
			err := o.blocks(x, text)
			all.add(kinds[e.name], text.oneLine())
			return err
		})
	})
	all.write(md)
	return err
}

// omit notes an element that is left out.
func (o *odf) omit(x *xmlReader, e element) error {
	switch e.name {
	case "text:hidden-text":
		o.budget.omitted.add(hiddenText)
	case "text:ruby-text":
		o.budget.omitted.add(phoneticGuide)
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
