package document

import (
	"encoding/xml"
	"io"
	"strconv"
	"strings"
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

// field is a computed part of a text: what computes it, then what it shows.
type field struct {
	instruction string
	href        string
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

// wordParagraph is what is known of a paragraph when it ends.
type wordParagraph struct {
	text          *inline
	style         string
	outline       int // 1 for the highest heading, 0 for none
	list          listPlace
	before, after int // pages that begin before its text, and within
	boxes         *markdown
	endDeleted    bool
}

func (d *docx) paragraph(x *xmlReader, md *markdown) error {
	p := &wordParagraph{text: &inline{budget: d.budget}, boxes: newMarkdown(d.budget), list: noList}
	if d.carried != nil {
		p.text, d.carried = d.carried, nil
	}
	if err := d.inlines(x, p, style{}); err != nil {
		return err
	}
	md.breaks += p.before
	if p.endDeleted {
		d.carried = p.text
	} else {
		d.write(p, md)
	}
	md.breaks += p.after
	if boxes := p.boxes.text(); md.flat {
		md.paragraph(boxes)
	} else {
		md.raw(boxes)
	}
	return nil
}

// write puts a paragraph where its style says.
func (d *docx) write(p *wordParagraph, md *markdown) {
	s := d.styles[p.style]
	outline, place := p.outline, p.list
	if outline == 0 {
		outline = s.outline
	}
	if place == noList {
		place = s.list
	}
	text := p.text.markdown()
	switch {
	case p.text.isEmpty() && s.code && len(md.code) > 0:
		md.codeLines("")
	case p.text.isEmpty() || strings.HasPrefix(s.name, "toc "):
	case s.name == "title":
		md.heading(1, text)
	case outline > 0 && outline < 10:
		md.heading(outline, strings.TrimSpace(d.lists.next(place).heading()+" "+text))
	case (s.code || p.text.isCode()) && !md.flat:
		md.codeLines(p.text.plain())
	case d.lists.isUnmarked(place):
		md.more(text)
	case place != noList && place.num != "0":
		marker, label := d.lists.next(place).item()
		md.item(place.level, marker, strings.TrimSpace(label+" "+text))
	case s.quote:
		md.quote(text)
	default:
		md.paragraph(text)
	}
}

// inlines reads what holds runs of text.
func (d *docx) inlines(x *xmlReader, p *wordParagraph, s style) error {
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "w:pPr":
			return p.properties(x)
		case "w:r":
			return d.run(x, p, s)
		case "w:hyperlink":
			linked := s
			if r := d.links[attr(e, "r:id")]; r.external {
				linked.href = r.target
			}
			return d.inlines(x, p, linked)
		case "w:fldSimple":
			linked := s
			linked.href = hyperlink(attr(e, "w:instr"))
			return d.inlines(x, p, linked)
		case "w:ins", "w:moveTo", "w:smartTag", "w:sdt", "w:sdtContent", "w:customXml", "w:dir", "w:bdo", "m:oMathPara":
			return d.inlines(x, p, s)
		case "m:oMath":
			return formula(x, p.text)
		}
		return nil
	}, nil)
}

func (p *wordParagraph) properties(x *xmlReader) error {
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "w:pStyle":
			p.style = attr(e, "w:val")
		case "w:outlineLvl":
			p.outline = number(attr(e, "w:val"), 9) + 1
		case "w:numPr":
			return p.list.read(x)
		case "w:rPr":
			return x.walk(func(e xml.StartElement) error {
				p.endDeleted = p.endDeleted || x.name(e) == "w:del" || x.name(e) == "w:moveFrom"
				return nil
			}, nil)
		}
		return nil
	}, nil)
}

// run reads text of one look.
func (d *docx) run(x *xmlReader, p *wordParagraph, s style) error {
	hidden := false
	if n := len(d.fields); n > 0 && d.fields[n-1].href != "" {
		s.href = d.fields[n-1].href
	}
	return x.walk(func(e xml.StartElement) error {
		if x.name(e) == "w:rPr" {
			look, err := d.styles.look(x)
			s.code, s.struck, s.raised, hidden = s.code || look.code, look.struck, look.raised, look.hidden
			return err
		}
		if hidden {
			return nil
		}
		return d.runPart(x, e, p, s)
	}, nil)
}

func (d *docx) runPart(x *xmlReader, e xml.StartElement, p *wordParagraph, s style) error {
	switch x.name(e) {
	case "w:t":
		text, err := x.text()
		p.text.addWords(text, s)
		return err
	case "w:tab", "w:ptab":
		p.text.add("\t", s)
	case "w:br", "w:cr":
		p.text.add("\n", s)
	case "w:noBreakHyphen":
		p.text.add("-", s)
	case "w:footnoteReference":
		p.text.add(d.cite("footnote"+attr(e, "w:id")), style{})
	case "w:endnoteReference":
		p.text.add(d.cite("endnote"+attr(e, "w:id")), style{})
	case "w:lastRenderedPageBreak":
		if p.text.isEmpty() {
			p.before++
		} else {
			p.after++
		}
	case "w:fldChar", "w:instrText":
		return d.field(x, e)
	case "w:ruby":
		return x.find("w:rubyBase", func(xml.StartElement) error { return d.inlines(x, p, s) })
	case "w:drawing", "w:pict", "w:object", "mc:AlternateContent":
		return d.boxes(x, p)
	}
	return nil
}

// field follows the marks of a field: it begins, what is shown of it begins, it ends.
func (d *docx) field(x *xmlReader, e xml.StartElement) error {
	n := len(d.fields)
	switch kind := attr(e, "w:fldCharType"); {
	case kind == "begin" && n < maxXMLDepth:
		d.fields = append(d.fields, field{})
	case n == 0:
	case x.name(e) == "w:instrText":
		text, err := x.text()
		if f := &d.fields[n-1]; len(f.instruction)+len(text) <= maxLinkBytes+100 {
			f.instruction += text
		}
		return err
	case kind == "separate":
		d.fields[n-1].href = hyperlink(d.fields[n-1].instruction)
	case kind == "end":
		d.fields = d.fields[:n-1]
	}
	return nil
}

// hyperlink is the address in a field such as HYPERLINK "https://example.org".
func hyperlink(instruction string) string {
	rest, ok := strings.CutPrefix(strings.TrimSpace(instruction), "HYPERLINK")
	if !ok {
		return ""
	}
	address := strings.Trim(strings.TrimSpace(rest), `"`)
	address, _, _ = strings.Cut(address, `"`)
	return strings.TrimSpace(address)
}

// boxes reads the text boxes in a drawing. Of two forms of one drawing, the first counts.
func (d *docx) boxes(x *xmlReader, p *wordParagraph) error {
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "w:txbxContent":
			return d.moreBlocks(x, p.boxes)
		case "mc:Fallback":
			return nil
		}
		return d.boxes(x, p)
	}, nil)
}

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

// add puts a cell n times.
func (r *row) add(b *budget, text string, n int) {
	for range min(n, maxColumns) {
		if !b.handle(len(text) + 16) {
			return
		}
		r.cells = append(r.cells, text)
	}
}

// number is a whole number; otherwise if it is none, or not one that fits.
func number(s string, otherwise int) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil || n < -1_000_000 || n > 1_000_000 {
		return otherwise
	}
	return n
}
