package document

import (
	"encoding/xml"
	"strconv"
	"strings"
)

// odfStyle is what is kept of a style of OpenDocument.
type odfStyle struct {
	parent             string
	code, title, quote bool
	struck, raised     bool
	hidden             bool // the text, or the sheet
	newPage            bool // it begins one
}

func (o *odf) readStyles(x *xmlReader) error {
	return x.walk(func(xml.StartElement) error {
		return x.walk(func(e xml.StartElement) error { return o.readStyle(x, e) }, nil)
	}, nil)
}

// readStyle reads what holds styles.
func (o *odf) readStyle(x *xmlReader, e xml.StartElement) error {
	switch x.name(e) {
	case "office:styles", "office:automatic-styles":
		return x.walk(func(e xml.StartElement) error { return o.readStyle(x, e) }, nil)
	case "style:style":
		s := odfStyle{parent: attr(e, "style:parent-style-name")}
		name := attr(e, "style:name")
		s.named(name)
		s.newPage = attr(e, "style:master-page-name") != ""
		err := s.read(x)
		o.styles[attr(e, "style:family")+"/"+name] = s
		return err
	case "text:list-style":
		list := &abstractList{}
		o.lists[attr(e, "style:name")] = list
		return readODFLevels(x, list)
	case "text:outline-style":
		return readODFLevels(x, o.outline)
	}
	return nil
}

// named tells what the names that programs use mean.
func (s *odfStyle) named(name string) {
	name = strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(name, "_20_", " "), "_", " "))
	s.code = isCodeName(name)
	s.title = name == "title"
	s.quote = strings.HasPrefix(name, "quotation")
}

func (s *odfStyle) read(x *xmlReader) error {
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "style:text-properties":
			through := attr(e, "style:text-line-through-style")
			s.struck = through != "" && through != "none"
			s.raised = strings.HasPrefix(attr(e, "style:text-position"), "super")
			s.hidden = attr(e, "text:display") == "none"
			s.code = s.code || isCodeFont(attr(e, "style:font-name"))
		case "style:paragraph-properties":
			s.newPage = s.newPage || attr(e, "fo:break-before") == "page"
		case "style:table-properties":
			s.hidden = s.hidden || attr(e, "table:display") == "false"
		}
		return nil
	}, nil)
}

// style is one of a family, with what it takes from its parents.
func (o *odf) style(family, name string) odfStyle {
	s := o.styles[family+"/"+name]
	if s.parent == "" && name != "" {
		var named odfStyle
		named.named(name)
		s.code, s.title, s.quote = s.code || named.code, s.title || named.title, s.quote || named.quote
	}
	parent := s.parent
	for range maxStyles {
		if parent == "" {
			break
		}
		from := o.styles[family+"/"+parent]
		s.code, s.title, s.quote = s.code || from.code, s.title || from.title, s.quote || from.quote
		s.struck, s.raised, s.hidden = s.struck || from.struck, s.raised || from.raised, s.hidden || from.hidden
		parent = from.parent
	}
	return s
}

// readODFLevels reads the levels of a list as those of Word: a bullet, or the text that its counts stand in.
func readODFLevels(x *xmlReader, list *abstractList) error {
	return x.walk(func(e xml.StartElement) error {
		level := number(attr(e, "text:level"), 0) - 1
		if level < 0 || level >= maxListLevels {
			return nil
		}
		l := &list.levels[level]
		l.start = number(attr(e, "text:start-value"), 1)
		switch l.format = attr(e, "style:num-format"); {
		case x.name(e) != "text:list-level-style-number" && x.name(e) != "text:outline-level-style":
			l.format = "bullet"
		case l.format != "":
			l.text = attr(e, "style:num-prefix") + levelMarks(level, number(attr(e, "text:display-levels"), 1)) + attr(e, "style:num-suffix")
			l.text = l.text[:min(len(l.text), 100)]
		}
		return nil
	}, nil)
}

// levelMarks are the marks for the counts of a level and of those above it, as "%1.%2".
func levelMarks(level, shown int) string {
	var marks []string
	for i := max(0, level+1-max(shown, 1)); i <= level; i++ {
		marks = append(marks, "%"+strconv.Itoa(i+1))
	}
	return strings.Join(marks, ".")
}
