package document

import (
	"encoding/xml"
	"strings"
)

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

// field is a computed part of a text: what computes it, then what it shows.
type field struct {
	instruction string
	href        string
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
