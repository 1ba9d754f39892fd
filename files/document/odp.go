package document

// slides reads the pages of a presentation.
func (o *odf) slides(x *xmlReader, _ element, md *markdown) error {
	n := 0
	return x.find("draw:page", func(element) error {
		n++
		o.budget.omitted.at = numbered("slide", n)
		s := &odpSlide{odf: o, md: newMarkdown(o.budget), notes: newMarkdown(o.budget)}
		if err := s.shapes(x, s.md); err != nil {
			return err
		}
		md.slide(n, s.title, s.md, s.notes)
		return nil
	})
}

type odpSlide struct {
	*odf

	md, notes *markdown
	title     string
}

// shapes reads the shapes on a slide, or in its notes.
func (s *odpSlide) shapes(x *xmlReader, md *markdown) error {
	return x.each(func(e element) error {
		switch e.attr("presentation:class") {
		case "date-time", "footer", "header", "page-number", "page":
			return nil
		case "title":
			if s.title == "" && md == s.md {
				title := newFlat(s.budget)
				err := s.blocks(x, title)
				s.title = title.oneLine()
				return err
			}
		}
		switch e.name {
		case "presentation:notes":
			return s.shapes(x, s.notes)
		case "text:p", "text:h", "text:list", "table:table":
			return s.block(x, e, md)
		case "office:forms", "office:annotation":
			return s.omit(x, e)
		}
		return s.shapes(x, md)
	})
}
