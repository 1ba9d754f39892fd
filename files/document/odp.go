package document

import (
	"strconv"
	"strings"
)

// slides reads the pages of a presentation.
func (o *odf) slides(x *xmlReader, _ element, md *markdown) error {
	n, footers := 0, newFooters()
	err := x.find("draw:page", func(element) error {
		n++
		o.budget.omitted.at = numbered("slide", n)
		s := &odpSlide{odf: o, notes: newMarkdown(o.budget), footers: footers}
		if err := s.read(x); err != nil {
			return err
		}
		body := newMarkdown(o.budget)
		writeShapes(body, s.shapes)
		for _, text := range o.comments {
			body.paragraph(text)
		}
		o.comments = nil
		md.slide(n, s.title, body, s.notes)
		return nil
	})
	footers.write(md)
	return err
}

type odpSlide struct {
	*odf

	notes   *markdown
	shapes  []slideShape
	title   string
	footers *footers
}

// read reads the shapes on a slide, and its notes.
func (s *odpSlide) read(x *xmlReader) error {
	return x.each(func(e element) error {
		if e.name == "presentation:notes" {
			return s.content(x, s.notes)
		}
		if e.name == "office:forms" {
			return s.forms(x)
		}
		if e.name == "office:event-listeners" {
			return s.omit(x, e)
		}
		shape := slideShape{at: odfFrame(e), md: newMarkdown(s.budget)}
		err := s.shape(x, e, shape.md)
		if !shape.at.known && len(s.shapes) > 0 {
			shape.at = s.shapes[len(s.shapes)-1].at // in the order of the file
		}
		s.shapes = append(s.shapes, shape)
		return err
	})
}

// shape reads a shape on a slide, or in its notes.
func (s *odpSlide) shape(x *xmlReader, e element, md *markdown) error {
	switch class := e.attr("presentation:class"); class {
	case "page-number", "page":
		return nil
	case "date-time", "footer", "header":
		text := newFlat(s.budget)
		err := s.blocks(x, text)
		if md != s.notes {
			s.footers.add(odpFooters[class], text.oneLine())
		}
		return err
	case "title":
		if s.title == "" && md != s.notes {
			title := newFlat(s.budget)
			err := s.blocks(x, title)
			s.title = title.oneLine()
			return err
		}
	}
	switch e.name {
	case "text:p", "text:h", "text:list", "table:table", "draw:frame", "office:annotation", "draw:control":
		return s.block(x, e, md)
	case "office:forms":
		return s.forms(x)
	}
	return s.content(x, md)
}

var odpFooters = map[string]string{"footer": "Footer", "header": "Header", "date-time": "Date"}

func (s *odpSlide) content(x *xmlReader, md *markdown) error {
	return x.each(func(e element) error { return s.shape(x, e, md) })
}

// odfFrame returns where a shape is on its slide.
func odfFrame(e element) frame {
	x, hasX := odfLength(e.attr("svg:x"))
	y, hasY := odfLength(e.attr("svg:y"))
	width, _ := odfLength(e.attr("svg:width"))
	height, _ := odfLength(e.attr("svg:height"))
	return frame{x, y, width, height, hasX && hasY}
}

// odfLength returns a length such as 2.54cm in English Metric Units.
func odfLength(s string) (length float64, ok bool) {
	for unit, size := range map[string]float64{"cm": 360_000, "mm": 36_000, "in": 914_400, "pt": 12_700} {
		if digits, found := strings.CutSuffix(s, unit); found {
			n, err := strconv.ParseFloat(digits, 64)
			return n * size, err == nil
		}
	}
	return 0, false
}
