package document

import (
	"cmp"
	"regexp"
	"strings"
)

// wordParagraph collects a paragraph until it ends.
type wordParagraph struct {
	text          *inline
	style         string
	outline       int // 1 for the highest heading, 0 for none
	list          listPlace
	before, after int // number of pages that begin before the text, and within it
	boxes         *markdown
	endDeleted    bool
}

func (d *docx) paragraph(x *xmlReader, md *markdown) error {
	p := &wordParagraph{text: &inline{budget: d.budget}, boxes: newMarkdown(d.budget)}
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
	md.embed(p.boxes)
	return nil
}

// write adds a paragraph in its style.
func (d *docx) write(p *wordParagraph, md *markdown) {
	s := d.styles.whole(p.style)
	outline, place := cmp.Or(p.outline, s.outline), cmp.Or(p.list, s.list)
	b := block{code: (s.code || p.text.isCode()) && !md.flat, quote: s.quote}
	switch {
	case p.text.isEmpty():
	case strings.HasPrefix(s.name, "toc "):
		d.omitContents()
		return
	case s.name == "title":
		b.heading = 1
	case outline > 0 && outline < 10:
		b.heading, b.label = outline, d.lists.next(place)
	case b.code:
	case d.lists.isUnmarked(place):
		b.within = true
	case place != noList && place.num != "0":
		b.item, b.level, b.label = true, place.level, d.lists.next(place)
	}
	md.put(b, p.text)
	d.said = p.text.plain()
}

// inlines reads an element that contains runs of text.
func (d *docx) inlines(x *xmlReader, p *wordParagraph, s style) error {
	return eachIn(x, func(e element) error {
		within := s
		switch e.name {
		case "w:pPr":
			return x.tree(e, p.properties)
		case "w:r":
			return d.run(x, p, s)
		case "w:hyperlink":
			if r := d.links[e.attr("r:id")]; r.external {
				within.href = r.target
			}
		case "w:fldSimple":
			within.href = hyperlink(e.attr("w:instr"))
		case "m:oMath":
			return formula(x, p.text)
		case "w:del":
			d.budget.omitted.add(deletedText)
			return nil
		default:
			return nil
		}
		return d.inlines(x, p, within)
	})
}

func (p *wordParagraph) properties(props *tree) {
	p.style, p.outline, p.list = props.val("w:pStyle"), outlineLevel(props), listPlaceOf(props)
	end := props.at("w:rPr")
	p.endDeleted = end.at("w:del") != nil || end.at("w:moveFrom") != nil
}

// run reads text of one style.
func (d *docx) run(x *xmlReader, p *wordParagraph, s style) error {
	if n := len(d.fields); n > 0 && d.fields[n-1].href != "" {
		s.href = d.fields[n-1].href
	}
	return x.each(func(e element) error {
		switch {
		case e.name == "w:rPr":
			return x.tree(e, func(props *tree) { s = s.with(d.runStyle(props)) })
		case s.hidden:
			return d.omitHidden(x, e)
		}
		return d.runPart(x, e, p, s)
	})
}

// omitHidden notes a hidden text.
func (d *docx) omitHidden(x *xmlReader, e element) error {
	if e.name != "w:t" {
		return nil
	}
	text, err := x.text()
	if !isBlank(text) {
		d.budget.omitted.add(hiddenText)
	}
	return err
}

func (d *docx) runPart(x *xmlReader, e element, p *wordParagraph, s style) error {
	switch e.name {
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
		p.text.add(d.cite("footnote"+e.attr("w:id")), style{})
	case "w:endnoteReference":
		p.text.add(d.cite("endnote"+e.attr("w:id")), style{})
	case "w:commentReference":
		p.text.add(d.cite("comment"+e.attr("w:id")), style{})
	case "w:lastRenderedPageBreak":
		d.beginPage()
		if p.text.isEmpty() {
			p.before++
		} else {
			p.after++
		}
	case "w:sym":
		shown, ok := symbolOf(e.attr("w:font"), e.attr("w:char"))
		if !ok {
			d.budget.omitted.add("symbol")
		}
		p.text.add(shown, s)
	case "w:fldChar", "w:instrText":
		return d.field(x, e, p, s)
	case "w:ruby":
		d.budget.omitted.add(phoneticGuide)
		return x.find("w:rubyBase", func(element) error { return d.inlines(x, p, s) })
	case "w:drawing", "w:pict", "w:object", "mc:AlternateContent":
		return d.drawing(x, p, e.name == "w:object")
	}
	return nil
}

// field follows the marks of a field: its begin, the separator before its result, its end.
func (d *docx) field(x *xmlReader, e element, p *wordParagraph, s style) error {
	n := len(d.fields)
	switch kind := e.attr("w:fldCharType"); {
	case kind == "begin" && n < maxXMLDepth:
		d.fields = append(d.fields, field{})
		return x.find("w:ffData", func(data element) error {
			return x.tree(data, func(t *tree) { p.text.add(legacyValue(t), s) })
		})
	case n == 0:
	case e.name == "w:instrText":
		text, err := x.text()
		if f := &d.fields[n-1]; len(f.instruction)+len(text) <= maxLinkBytes+100 {
			f.instruction += text
		}
		return err
	case kind == "separate":
		d.fields[n-1].hasResult = true
		d.fields[n-1].href = hyperlink(d.fields[n-1].instruction)
	case kind == "end":
		if !d.fields[n-1].hasResult {
			p.text.add(equation(d.fields[n-1].instruction), s)
		}
		d.fields = d.fields[:n-1]
	}
	return nil
}

// equation returns the formula in a field such as EQ \f(3,4), of which no result is stored: 3/4.
func equation(instruction string) string {
	code, isEquation := strings.CutPrefix(strings.TrimSpace(instruction), "EQ ")
	if !isEquation {
		return ""
	}
	return strings.TrimSpace(equationFraction.ReplaceAllString(equationRoot.ReplaceAllString(code, "√($1)"), "$1/$2"))
}

var (
	equationFraction = regexp.MustCompile(`(?i)\\f\s*\(([^(),;\\]*)[,;]([^(),;\\]*)\)`)
	equationRoot     = regexp.MustCompile(`(?i)\\r\s*\([,;]?([^(),;\\]*)\)`)
)

// hyperlink returns the address in a field such as HYPERLINK "https://example.org".
func hyperlink(instruction string) string {
	if m := hyperlinkField.FindStringSubmatch(instruction); m != nil {
		return strings.TrimSpace(m[1])
	}
	return ""
}

var hyperlinkField = regexp.MustCompile(`^\s*HYPERLINK\s*"*([^"]*)`)

// wordDrawing is what is read of a drawing in a run.
type wordDrawing struct {
	alternative string
	pictures    []string // where their bytes are, if that is known
	isObject    bool     // the drawing is the picture of an embedded object
}

// drawing reads the text boxes, charts and diagrams in a drawing, and the alternative text of a picture. It notes a
// picture without such a text. If a drawing has two alternative forms, it reads the first.
func (d *docx) drawing(x *xmlReader, p *wordParagraph, isObject bool) error {
	w := wordDrawing{isObject: isObject}
	before := p.boxes.lines
	err := d.drawn(x, p, &w)
	shown := pictureText(w.alternative)
	switch {
	case len(w.pictures) > 0 || p.boxes.lines == before && !isObject:
		p.text.add(shown, style{})
	case p.boxes.lines > before:
		p.boxes.paragraph(besideText(w.alternative, p.boxes.text()))
	}
	for _, part := range w.pictures {
		p.text.add(d.budget.omitted.picture(picturePart(part), shown != ""), style{})
	}
	return err
}

func (d *docx) drawn(x *xmlReader, p *wordParagraph, w *wordDrawing) error {
	return x.each(func(e element) error {
		within := drawing{archive: d.archive, links: d.links, md: p.boxes}
		switch e.name {
		case "w:txbxContent":
			return d.blocks(x, p.boxes)
		case "pic:pic", "v:imagedata":
			if !w.isObject {
				w.pictures = append(w.pictures, d.links[e.attr("r:id")].target)
			}
		case "a:blip":
			if n := len(w.pictures); n > 0 && w.pictures[n-1] == "" {
				w.pictures[n-1] = d.links[e.attr("r:embed")].target
			}
		case "c:chart", "cx:chart":
			return within.chart(e.attr("r:id"))
		case "dgm:relIds":
			return within.diagram(e.attr("r:dm"))
		case "o:OLEObject":
			d.archive.omitEmbedded(map[string]relation{"": d.links[e.attr("r:id")]}, d.budget.omitted.at, d.embedded)
		case "v:textpath":
			p.boxes.paragraph(onOneLine(e.attr("string")))
		case "mc:Fallback":
			return nil
		}
		switch e.name {
		case "wp:docPr", "pic:cNvPr", "v:shape", "v:rect":
			if w.alternative == "" {
				w.alternative = alternative(e)
			}
		}
		return d.drawn(x, p, w)
	})
}
