package document

import (
	"encoding/xml"
	"io"
	"strconv"
	"strings"
)

// PPTX reads a presentation of PowerPoint: each slide is a page under the heading "Slide n: title", with its lists, tables, links and
// diagrams, and what its speaker notes.
func PPTX(r io.ReaderAt, size int64) (Text, error) {
	return readArchive(r, size, func(a *archive, md *markdown) error {
		main, err := a.mainPart("ppt/presentation.xml")
		if err != nil {
			return err
		}
		slides, err := a.slides(main)
		if err != nil {
			return err
		}
		for i, part := range slides {
			if err := a.writeSlide(md, i+1, part); err != nil {
				return err
			}
		}
		return nil
	})
}

// slides are the parts of the slides, in their order, each once.
func (a *archive) slides(main string) (parts []string, err error) {
	links, err := a.relations(main)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	return parts, a.part(main, func(x *xmlReader) error {
		return x.find("p:sldId", func(e xml.StartElement) error {
			if part := links[attr(e, "r:id")].target; part != "" && !seen[part] {
				seen[part] = true
				parts = append(parts, part)
			}
			return nil
		})
	})
}

func (a *archive) writeSlide(md *markdown, n int, part string) error {
	links, err := a.relations(part)
	if err != nil {
		return err
	}
	s := &slide{archive: a, links: links, md: newMarkdown(a.budget)}
	if err := a.part(part, s.shapes); err != nil {
		return err
	}
	notes, err := a.slideNotes(related(links, "notesSlide", ""))
	if err != nil {
		return err
	}
	md.slide(n, s.title, s.md, notes)
	return nil
}

// slide is one that is read, or its notes.
type slide struct {
	archive *archive
	links   map[string]relation
	md      *markdown
	title   string
	isNotes bool
}

// slideNotes is what the speaker notes.
func (a *archive) slideNotes(part string) (*markdown, error) {
	links, err := a.relations(part)
	if err != nil {
		return nil, err
	}
	notes := &slide{archive: a, links: links, md: newMarkdown(a.budget), isNotes: true}
	return notes.md, a.optional(part, notes.shapes)
}

// shapes reads what is on a slide, groups and all.
func (s *slide) shapes(x *xmlReader) error {
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "p:sp":
			return s.shape(x)
		case "a:tbl":
			return s.table(x)
		case "dgm:relIds":
			return s.diagram(attr(e, "r:dm"))
		case "mc:Fallback":
			return nil
		}
		return s.shapes(x)
	}, nil)
}

// shape reads a shape's text. Its placeholder says what it is for: empty is free text, "body" a list.
func (s *slide) shape(x *xmlReader) error {
	place := ""
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "p:nvSpPr":
			return x.find("p:ph", func(e xml.StartElement) error {
				if place = attr(e, "type"); place == "" || place == "obj" {
					place = "body"
				}
				return nil
			})
		case "p:txBody":
			return s.placed(x, place)
		}
		return nil
	}, nil)
}

func (s *slide) placed(x *xmlReader, place string) error {
	switch {
	case place == "dt" || place == "ftr" || place == "hdr" || place == "sldNum" || place == "sldImg":
		return nil
	case (place == "title" || place == "ctrTitle") && s.title == "":
		title := newFlat(s.archive.budget)
		err := s.paragraphs(x, title, false)
		s.title = strings.ReplaceAll(title.text(), "\n", " ")
		return err
	}
	return s.paragraphs(x, s.md, place == "body" && !s.isNotes)
}

// paragraphs reads a body of text, whose paragraphs may be a list unless they say otherwise.
func (s *slide) paragraphs(x *xmlReader, md *markdown, isList bool) error {
	var counts [maxListLevels]int
	return x.find("a:p", func(xml.StartElement) error {
		p := &slideParagraph{text: &inline{budget: s.archive.budget}, bullet: isList}
		if err := s.inlines(x, p); err != nil {
			return err
		}
		p.write(md, &counts)
		return nil
	})
}

type slideParagraph struct {
	text   *inline
	level  int
	bullet bool
	number bool
	start  int
}

func (p *slideParagraph) write(md *markdown, counts *[maxListLevels]int) {
	if p.text.isEmpty() {
		return
	}
	clear(counts[p.level+1:])
	marker := "-"
	if p.number {
		if counts[p.level] == 0 {
			counts[p.level] = p.start - 1
		}
		counts[p.level]++
		marker = strconv.Itoa(counts[p.level]) + "."
	} else {
		counts[p.level] = 0
	}
	switch {
	case p.text.isCode() && !md.flat && !p.number:
		md.codeLines(p.text.plain())
	case p.bullet || p.number:
		md.item(p.level, marker, p.text.markdown())
	default:
		md.paragraph(p.text.markdown())
	}
}

func (p *slideParagraph) properties(x *xmlReader, e xml.StartElement) error {
	p.level = min(max(number(attr(e, "lvl"), 0), 0), maxListLevels-1)
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "a:buNone":
			p.bullet = false
		case "a:buChar", "a:buBlip":
			p.bullet = true
		case "a:buAutoNum":
			p.number, p.start = true, max(number(attr(e, "startAt"), 1), 1)
		}
		return nil
	}, nil)
}

func (s *slide) inlines(x *xmlReader, p *slideParagraph) error {
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "a:pPr":
			return p.properties(x, e)
		case "a:r", "a:fld":
			return s.run(x, p)
		case "a:br":
			p.text.add("\n", style{})
		case "m:oMath":
			return formula(x, p.text)
		case "a:rPr", "a:endParaRPr", "mc:Fallback":
			return nil
		}
		return s.inlines(x, p)
	}, nil)
}

func (s *slide) run(x *xmlReader, p *slideParagraph) error {
	var look style
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "a:rPr":
			strike := attr(e, "strike")
			look.struck = strike == "sngStrike" || strike == "dblStrike"
			look.raised = number(attr(e, "baseline"), 0) > 0
			return x.walk(func(e xml.StartElement) error {
				switch x.name(e) {
				case "a:hlinkClick":
					if link := s.links[attr(e, "r:id")]; link.external {
						look.href = link.target
					}
				case "a:latin":
					look.code = isCodeFont(attr(e, "typeface"))
				}
				return nil
			}, nil)
		case "a:t":
			text, err := x.text()
			p.text.addWords(text, look)
			return err
		}
		return nil
	}, nil)
}

func (s *slide) table(x *xmlReader) error {
	var rows []row
	err := x.find("a:tr", func(xml.StartElement) error {
		var r row
		err := x.find("a:tc", func(xml.StartElement) error {
			md := newFlat(s.archive.budget)
			err := s.paragraphs(x, md, false)
			r.add(s.archive.budget, md.text(), 1)
			return err
		})
		rows = append(rows, r)
		return err
	})
	s.md.table(rows)
	return err
}

// diagram reads the texts of a SmartArt, which stand in a part of their own.
func (s *slide) diagram(id string) error {
	return s.archive.optional(s.links[id].target, func(x *xmlReader) error {
		return x.find("dgm:t", func(xml.StartElement) error { return s.paragraphs(x, s.md, true) })
	})
}
