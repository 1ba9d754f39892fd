package document

import (
	"io"
	"strconv"
)

// PPTX reads a PowerPoint presentation: each slide is a page below the heading "Slide n: title", with its lists,
// tables, links, diagrams and speaker notes.
func PPTX(r io.ReaderAt, size int64) (Text, error) {
	return readArchive(r, size, func(a *archive, md *markdown) error {
		main, err := a.mainPart("ppt/presentation.xml")
		if err != nil {
			return err
		}
		a.omitMacros()
		slides, err := a.slides(main)
		if err != nil {
			return err
		}
		for i, part := range slides {
			a.budget.omitted.at = numbered("slide", i+1)
			s, err := a.readSlide(part, false)
			if err != nil {
				return err
			}
			notes := &slide{md: newMarkdown(a.budget)}
			if part := related(s.links, "notesSlide", ""); a.has(part) {
				if notes, err = a.readSlide(part, true); err != nil {
					return err
				}
			}
			md.slide(i+1, s.title, s.md, notes.md)
		}
		return nil
	})
}

// slides returns the parts of the slides in order, each once.
func (a *archive) slides(main string) (parts []string, err error) {
	links, err := a.relations(main)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	return parts, a.find(main, "p:sldId", func(_ *xmlReader, e element) error {
		if part := links[e.attr("r:id")].target; part != "" && !seen[part] {
			seen[part] = true
			parts = append(parts, part)
		}
		return nil
	})
}

// slide is the state of reading a slide or its notes.
type slide struct {
	archive *archive
	links   map[string]relation
	md      *markdown
	title   string
	isNotes bool
}

func (a *archive) readSlide(part string, isNotes bool) (*slide, error) {
	links, err := a.relations(part)
	if err != nil {
		return nil, err
	}
	a.omitEmbedded(links, a.budget.omitted.at)
	s := &slide{archive: a, links: links, md: newMarkdown(a.budget), isNotes: isNotes}
	return s, a.part(part, s.shapes)
}

// shapes reads the shapes on a slide, including those in groups.
func (s *slide) shapes(x *xmlReader) error {
	return x.each(func(e element) error {
		switch e.name {
		case "p:sp":
			return s.shape(x)
		case "a:tbl":
			return s.table(x)
		case "dgm:relIds":
			return s.diagram(e.attr("r:dm"))
		case "p:pic":
			return s.picture(x)
		case "c:chart":
			s.archive.budget.omitted.add(chart)
		case "p:oleObj", "mc:Fallback": // an object within a slide has a picture of itself
			return nil
		}
		return s.shapes(x)
	})
}

// picture notes a picture, or a video or a sound, which a picture stands for.
func (s *slide) picture(x *xmlReader) error {
	kind := picture
	err := x.find("p:nvPr", func(element) error {
		return x.each(func(e element) error {
			switch e.name {
			case "a:videoFile", "a:audioFile", "a:wavAudioFile", "a:quickTimeFile":
				kind = media
			}
			return nil
		})
	})
	s.archive.budget.omitted.add(kind)
	return err
}

// shape reads a shape's text. The shape's placeholder says what the text is for: "" is free text, "body" is a list.
func (s *slide) shape(x *xmlReader) error {
	place := ""
	return x.each(func(e element) error {
		switch e.name {
		case "p:nvSpPr":
			return x.find("p:ph", func(e element) error {
				if place = e.attr("type"); place == "" || place == "obj" {
					place = "body"
				}
				return nil
			})
		case "p:txBody":
			return s.placed(x, place)
		}
		return nil
	})
}

// placed reads the text of a placeholder.
func (s *slide) placed(x *xmlReader, place string) error {
	switch {
	case place == "dt" || place == "ftr" || place == "hdr" || place == "sldNum" || place == "sldImg":
		return nil
	case (place == "title" || place == "ctrTitle") && s.title == "":
		title := newFlat(s.archive.budget)
		err := s.paragraphs(x, title, false)
		s.title = title.oneLine()
		return err
	}
	return s.paragraphs(x, s.md, place == "body" && !s.isNotes)
}

// paragraphs reads a body of text. If isList is set, its paragraphs are list items unless they say otherwise.
func (s *slide) paragraphs(x *xmlReader, md *markdown, isList bool) error {
	var counts [maxListLevels]int
	return x.find("a:p", func(element) error {
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
	b := block{code: p.text.isCode() && !md.flat && !p.number, item: p.bullet || p.number, level: p.level}
	clear(counts[p.level+1:])
	if p.number {
		if counts[p.level] == 0 {
			counts[p.level] = p.start - 1
		}
		counts[p.level]++
		b.label = strconv.Itoa(counts[p.level]) + "."
	} else {
		counts[p.level] = 0
	}
	md.put(b, p.text)
}

func (p *slideParagraph) properties(props *tree) {
	p.level = min(max(number(props.attr("lvl"), 0), 0), maxListLevels-1)
	p.bullet = (p.bullet || props.at("a:buChar") != nil || props.at("a:buBlip") != nil) && props.at("a:buNone") == nil
	if auto := props.at("a:buAutoNum"); auto != nil {
		p.number, p.start = true, max(number(auto.attr("startAt"), 1), 1)
	}
}

func (s *slide) inlines(x *xmlReader, p *slideParagraph) error {
	return x.each(func(e element) error {
		switch e.name {
		case "a:pPr":
			return x.tree(e, p.properties)
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
	})
}

func (s *slide) run(x *xmlReader, p *slideParagraph) error {
	var look style
	return x.each(func(e element) error {
		switch e.name {
		case "a:rPr":
			return x.tree(e, func(props *tree) { look = s.look(props) })
		case "a:t":
			text, err := x.text()
			p.text.addWords(text, look)
			return err
		}
		return nil
	})
}

func (s *slide) look(props *tree) style {
	strike := props.attr("strike")
	look := style{
		code:   isCodeFont(props.at("a:latin").attr("typeface")),
		struck: strike == "sngStrike" || strike == "dblStrike",
		raised: number(props.attr("baseline"), 0) > 0,
	}
	if link := s.links[props.at("a:hlinkClick").attr("r:id")]; link.external {
		look.href = link.target
	}
	return look
}

func (s *slide) table(x *xmlReader) error {
	var rows []row
	err := x.find("a:tr", func(element) error {
		var r row
		err := x.find("a:tc", func(element) error {
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

// diagram reads the texts of a SmartArt diagram, which is a separate part.
func (s *slide) diagram(id string) error {
	return s.archive.find(s.links[id].target, "dgm:t",
		func(x *xmlReader, _ element) error { return s.paragraphs(x, s.md, true) })
}
