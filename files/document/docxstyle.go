package document

import "strings"

type docx struct {
	archive  *archive
	budget   *budget
	styles   blockStyles
	lists    *wordLists
	links    map[string]relation
	notes    map[string]string // text of each note, by kind and id
	cited    []string          // texts of the cited notes, in the order of their numbers
	numbers  map[string]int    // number of each cited note; nil while the notes are read
	fields   []field
	page     int             // page that Word stored for what is read; 1 if it stored no pages
	contents bool            // a table of contents was left out
	embedded map[string]bool // parts with embedded documents that were met
	carried  *inline         // text of a paragraph without end mark, which the next paragraph continues
	said     string          // the last paragraph, without its style
}

// omitContents notes that the document has a table of contents.
func (d *docx) omitContents() {
	if !d.contents {
		d.contents = true
		d.budget.omitted.add(tableContents)
	}
}

// beginPage follows the pages that Word stored.
func (d *docx) beginPage() {
	d.page++
	d.budget.omitted.at.word, d.budget.omitted.at.n = "page", d.page
}

// cite returns the mark of a note. Further citations of a note have the same mark. A note within a note gets no mark.
func (d *docx) cite(key string) string {
	if d.numbers == nil || d.notes[key] == "" {
		return ""
	}
	if d.numbers[key] == 0 {
		d.cited = append(d.cited, d.notes[key])
		d.numbers[key] = len(d.cited)
	}
	return noteMark(d.numbers[key])
}

// wrappers are Word elements that only contain what may be in their parents.
var wrappers = setOf(`w:sdt w:sdtContent w:ins w:moveTo w:customXml w:smartTag w:dir w:bdo m:oMathPara
	mc:AlternateContent mc:Choice`)

// eachIn calls f for each child of a Word element. For a wrapper, it calls f for the wrapper's children instead.
func eachIn(x *xmlReader, f func(e element) error) error {
	return x.each(func(e element) error {
		if wrappers[e.name] {
			return eachIn(x, f)
		}
		return f(e)
	})
}

// field is a part of the text that Word computes: an instruction, then the result to show.
type field struct {
	instruction string
	href        string
	hasResult   bool
}

func readWordStyles(a *archive, part string) (blockStyles, error) {
	styles := blockStyles{}
	return styles, a.find(part, "w:style", func(x *xmlReader, e element) error {
		return x.tree(e, func(t *tree) { styles[t.attr("w:styleId")] = wordStyleOf(t) })
	})
}

func wordStyleOf(t *tree) blockStyle {
	paragraph, name := t.at("w:pPr"), strings.ToLower(t.val("w:name"))
	s := blockStyle{
		name: name, parent: t.val("w:basedOn"), outline: outlineLevel(paragraph), list: listPlaceOf(paragraph),
		quote: strings.Contains(name, "quot") || name == "block text",
	}
	s.code = isCodeName(name) || isCodeFont(t.at("w:rPr", "w:rFonts").attr("w:ascii"))
	if level, ok := strings.CutPrefix(name, "heading "); ok && s.outline == 0 {
		s.outline = number(level, 0)
	}
	return s
}

// outlineLevel returns the heading level in a paragraph's properties, 1 for the highest, or 0 if there is none.
func outlineLevel(props *tree) int {
	if props.at("w:outlineLvl") == nil {
		return 0
	}
	return number(props.val("w:outlineLvl"), 9) + 1
}

// runStyle returns the style that a run's properties give its text.
func (d *docx) runStyle(props *tree) style {
	return style{
		code:   d.styles.whole(props.val("w:rStyle")).code || isCodeFont(props.at("w:rFonts").attr("w:ascii")),
		struck: props.isOn("w:strike") || props.isOn("w:dstrike"),
		raised: props.val("w:vertAlign") == "superscript",
		hidden: props.isOn("w:vanish"),
	}
}
