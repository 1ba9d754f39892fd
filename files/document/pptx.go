package document

import (
	"cmp"
	"io"
	"maps"
	"slices"
)

// PPTX reads a PowerPoint presentation: each slide is a page below the heading "Slide n: title", with its texts in the
// order in which they are read, its lists, tables, links, diagrams, charts, comments and speaker notes. Footers follow
// at the end, each once.
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
		d := &deck{archive: a, footers: newFooters(), layouts: map[string]places{}}
		if err := d.readAuthors(main); err != nil {
			return err
		}
		for i, part := range slides {
			a.budget.omitted.at = numbered("slide", i+1)
			s, err := d.readSlide(part, false)
			if err != nil {
				return err
			}
			notes := &slide{drawing: drawing{md: newMarkdown(a.budget)}}
			if part := related(s.links, "notesSlide", ""); a.has(part) {
				if notes, err = d.readSlide(part, true); err != nil {
					return err
				}
			}
			md.slide(i+1, s.title, s.md, notes.md)
		}
		d.footers.write(md)
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

// deck is the state of reading a presentation.
type deck struct {
	archive *archive
	footers *footers
	layouts map[string]places // by the part of a layout or a master
	authors map[string]string // of comments, by their ids
}

// readAuthors reads the names of those who commented.
func (d *deck) readAuthors(main string) error {
	links, err := d.archive.relations(main)
	if err != nil {
		return err
	}
	d.authors = map[string]string{}
	for _, kind := range []string{"commentAuthors", "authors"} {
		err := d.archive.optional(related(links, kind, ""), func(x *xmlReader) error {
			return x.each(func(element) error {
				return x.each(func(e element) error {
					d.authors[e.attr("id")] = e.attr("name")
					return nil
				})
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// placesOf reads where a layout puts its placeholders. A placeholder without a frame is where the layout's master puts
// it.
func (d *deck) placesOf(part string) (places, error) {
	if known, ok := d.layouts[part]; ok || !d.archive.has(part) {
		return known, nil
	}
	found := places{}
	d.layouts[part] = found // before its master, which may lead back to it
	links, err := d.archive.relations(part)
	if err != nil {
		return nil, err
	}
	master, err := d.placesOf(related(links, "slideMaster", ""))
	if err != nil {
		return nil, err
	}
	return found, d.archive.find(part, "p:sp", func(x *xmlReader, e element) error {
		return x.tree(e, func(t *tree) {
			placeholder := t.at("p:nvSpPr", "p:nvPr", "p:ph")
			if placeholder == nil {
				return
			}
			kind, index := placeholder.attr("type"), placeholder.attr("idx")
			at := frame{}
			if own := t.at("p:spPr", "a:xfrm"); own != nil {
				at = frameOf(own)
			}
			found.set(kind, index, at.or(master.of(kind, "")))
		})
	})
}

// slide is the state of reading a slide or its notes.
type slide struct {
	drawing

	deck    *deck
	shapes  []slideShape
	layout  places // where the slide's layout puts placeholders
	title   string
	isNotes bool
}

func (d *deck) readSlide(part string, isNotes bool) (*slide, error) {
	a := d.archive
	links, err := a.relations(part)
	if err != nil {
		return nil, err
	}
	a.omitEmbedded(links, a.budget.omitted.at, map[string]bool{})
	s := &slide{drawing: drawing{archive: a, links: links}, deck: d, isNotes: isNotes}
	if s.layout, err = d.placesOf(related(links, "slideLayout", "")); err != nil {
		return nil, err
	}
	err = a.part(part, s.read)
	s.md = newMarkdown(a.budget)
	writeShapes(s.md, s.shapes)
	if err != nil || isNotes {
		return s, err
	}
	return s, s.comments()
}

// read reads the shapes on a slide.
func (s *slide) read(x *xmlReader) error {
	return x.each(func(e element) error {
		switch e.name {
		case "p:sp", "p:pic", "p:graphicFrame", "p:cxnSp", "p:grpSp", "a:tbl", "dgm:relIds", "c:chart", "cx:chart":
			return s.shape(x, e)
		case "mc:Fallback":
			return nil
		}
		return s.read(x)
	})
}

// shape adds a shape. A group stands where its frame is; the shapes in it are ordered among themselves.
func (s *slide) shape(x *xmlReader, e element) error {
	shape := slideShape{md: newMarkdown(s.archive.budget)}
	before, md := s.shapes, s.md
	s.shapes, s.md = nil, shape.md
	err := s.content(x, e, &shape)
	writeShapes(shape.md, s.shapes)
	s.shapes, s.md = before, md
	shown := pictureText(shape.alternative)
	if e.name == "p:pic" && shape.isMedia {
		s.archive.budget.omitted.add(media)
	}
	if e.name == "p:pic" && !shape.isMedia {
		shown += s.archive.budget.omitted.picture(picturePart(s.links[shape.blip].target), shown != "")
	}
	if shape.md.lines == 0 {
		shape.md.paragraph(shown)
	} else {
		shape.md.paragraph(besideText(shape.alternative, shape.md.text()))
	}
	if !shape.at.known {
		if shape.at = s.layout.of(shape.place, shape.index); !shape.at.known && len(before) > 0 {
			shape.at = before[len(before)-1].at // in the order of the file
		}
	}
	s.shapes = append(s.shapes, shape)
	return err
}

// content reads an element of a shape, or the shape itself: its place, and its text, table, diagram or chart.
func (s *slide) content(x *xmlReader, e element, shape *slideShape) error {
	switch e.name {
	case "p:ph":
		shape.isPlaceholder, shape.place, shape.index = true, e.attr("type"), e.attr("idx")
	case "p:cNvPr":
		if shape.alternative == "" {
			shape.alternative = alternative(e)
		}
	case "a:xfrm", "p:xfrm":
		return x.tree(e, func(t *tree) { shape.at = shape.at.or(frameOf(t)) })
	case "a:blip":
		shape.blip = cmp.Or(shape.blip, e.attr("r:embed"))
	case "p:txBody":
		return s.placed(x, shape)
	case "a:tbl":
		return s.table(x)
	case "dgm:relIds":
		return s.diagram(e.attr("r:dm"))
	case "c:chart", "cx:chart":
		return s.chart(e.attr("r:id"))
	case "p:oleObj", "mc:Fallback": // an object within a slide has a picture of itself
		return nil
	}
	shape.isMedia = shape.isMedia || isMedia[e.name]
	return x.each(func(e element) error {
		switch e.name {
		case "p:sp", "p:pic", "p:graphicFrame", "p:cxnSp", "p:grpSp":
			return s.shape(x, e)
		}
		return s.content(x, e, shape)
	})
}

// placed reads the text of a shape. A placeholder says what its text is for: a title, a list, a footer.
func (s *slide) placed(x *xmlReader, shape *slideShape) error {
	switch shape.place {
	case "sldNum", "sldImg":
		return nil
	case "ftr", "hdr", "dt":
		text := newFlat(s.archive.budget)
		err := s.paragraphs(x, text, false)
		if !s.isNotes {
			s.deck.footers.add(footerKinds[shape.place], text.oneLine())
		}
		return err
	case "title", "ctrTitle":
		if s.title == "" {
			title := newFlat(s.archive.budget)
			err := s.paragraphs(x, title, false)
			s.title = title.oneLine()
			return err
		}
	}
	isList := shape.isPlaceholder && (shape.place == "" || shape.place == "obj" || shape.place == "body")
	return s.paragraphs(x, s.md, isList && !s.isNotes)
}

var footerKinds = map[string]string{"ftr": "Footer", "hdr": "Header", "dt": "Date"}

// comments adds the comments on a slide, old and new ones.
func (s *slide) comments() error {
	for _, id := range slices.Sorted(maps.Keys(s.links)) {
		link := s.links[id]
		if link.kind != "comments" {
			continue
		}
		err := s.archive.optional(link.target, func(x *xmlReader) error {
			return x.each(func(element) error {
				return x.each(func(e element) error {
					text := newFlat(s.archive.budget)
					err := s.comment(x, text)
					if shown := text.text(); shown != "" {
						s.md.paragraph(commentText(s.deck.authors[e.attr("authorId")], "", shown))
					}
					return err
				})
			})
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// comment reads the text of a comment, and of the replies to it.
func (s *slide) comment(x *xmlReader, to *markdown) error {
	return x.each(func(e element) error {
		switch e.name {
		case "p:text":
			text, err := x.text()
			to.paragraph(text)
			return err
		case "txBody", "p:txBody":
			return s.paragraphs(x, to, false)
		}
		return s.comment(x, to)
	})
}
