package document

import (
	"strconv"
	"strings"
)

// odf is the state of reading an OpenDocument.
type odf struct {
	archive *archive
	budget  *budget
	styles  blockStyles
	lists   map[string]*abstractList
	outline *abstractList
	last    *abstractList // the last list, which the next one may continue
	notes   []string
	depth   int  // nesting of notes
	paged   bool // the page breaks are known

	comments    []string // on the cells of a sheet or on a slide
	row, column int      // of the cell that is read, from 0
	isSheet     bool
	fields      map[string]string // values of a form's fields, by their ids
	drawn       *markdown         // what is drawn on a sheet; nil in other documents
}

func (o *odf) readStyles(x *xmlReader) error {
	return x.each(func(e element) error { return o.readStyle(x, e) })
}

// readStyle reads a style, or an element that contains styles.
func (o *odf) readStyle(x *xmlReader, e element) error {
	switch e.name {
	case "office:document-styles", "office:styles", "office:automatic-styles":
		return o.readStyles(x)
	case "style:style":
		family := e.attr("style:family")
		return x.tree(e, func(t *tree) { o.styles[family+"/"+t.attr("style:name")] = odfStyleOf(family, t) })
	case "text:list-style":
		return x.tree(e, func(t *tree) { o.lists[t.attr("style:name")] = odfLevels(t) })
	case "text:outline-style":
		return x.tree(e, func(t *tree) { o.outline = odfLevels(t) })
	}
	return nil
}

func odfStyleOf(family string, t *tree) blockStyle {
	s := namedStyle(t.attr("style:name"))
	text, through := t.at("style:text-properties"), t.at("style:text-properties").attr("style:text-line-through-style")
	if parent := t.attr("style:parent-style-name"); parent != "" {
		s.parent = family + "/" + parent
	}
	s.code = s.code || isCodeFont(text.attr("style:font-name"))
	s.struck = through != "" && through != "none"
	s.raised = strings.HasPrefix(text.attr("style:text-position"), "super")
	s.hidden = text.attr("text:display") == "none" || t.at("style:table-properties").attr("table:display") == "false"
	s.newPage = t.attr("style:master-page-name") != "" ||
		t.at("style:paragraph-properties").attr("fo:break-before") == "page"
	return s
}

func (o *odf) style(family, name string) blockStyle { return o.styles.whole(family + "/" + name) }

// odfLevels returns the levels of a list in the same form as Word's: a bullet, or the text around a number.
func odfLevels(t *tree) *abstractList {
	list := &abstractList{}
	for _, element := range t.children {
		level := number(element.attr("text:level"), 0) - 1
		if level < 0 || level >= maxListLevels {
			continue
		}
		l := listLevel{format: element.attr("style:num-format"), start: number(element.attr("text:start-value"), 1)}
		switch {
		case element.name != "text:list-level-style-number" && element.name != "text:outline-level-style":
			l.format = "bullet"
		case l.format != "":
			l.text = element.attr("style:num-prefix") + levelMarks(level, number(element.attr("text:display-levels"), 1)) +
				element.attr("style:num-suffix")
			l.text = l.text[:min(len(l.text), maxLevelTextBytes)]
		}
		list.levels[level] = l
	}
	return list
}

// levelMarks returns the marks for a level's number and the shown numbers of the levels above it, such as "%1.%2".
func levelMarks(level, shown int) string {
	var marks []string
	for i := max(0, level+1-max(shown, 1)); i <= level; i++ {
		marks = append(marks, "%"+strconv.Itoa(i+1))
	}
	return strings.Join(marks, ".")
}
