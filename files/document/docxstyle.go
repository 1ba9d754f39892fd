package document

import "strings"

// wordStyle is what is kept of a style, with what it inherits.
type wordStyle struct {
	name        string // in lower case
	outline     int    // 1 for the highest heading, 0 for none
	list        listPlace
	code, quote bool
	based       string // the id of the style that it inherits from
}

// wordStyles are those of a document, by id. Absent ones are plain.
type wordStyles map[string]wordStyle

// maxStyles is how many styles a style inherits from, one through the other.
const maxStyles = 20

func readWordStyles(a *archive, part string) (wordStyles, error) {
	styles := wordStyles{}
	err := a.optional(part, func(x *xmlReader) error {
		return x.find("w:style", func(e element) error {
			return x.tree(e, func(t *tree) { styles[t.attr("w:styleId")] = wordStyleOf(t) })
		})
	})
	whole := make(wordStyles, len(styles))
	for id, s := range styles {
		whole[id] = styles.inherit(s)
	}
	return whole, err
}

func wordStyleOf(t *tree) wordStyle {
	paragraph, name := t.at("w:pPr"), strings.ToLower(t.val("w:name"))
	s := wordStyle{
		name: name, based: t.val("w:basedOn"), outline: outlineLevel(paragraph), list: listPlaceOf(paragraph),
		code:  isCodeName(name) || isCodeFont(t.at("w:rPr", "w:rFonts").attr("w:ascii")),
		quote: strings.Contains(name, "quot") || name == "block text",
	}
	if level, ok := strings.CutPrefix(name, "heading "); ok && s.outline == 0 {
		s.outline = number(level, 0)
	}
	return s
}

// outlineLevel returns the level that a paragraph's properties give it in the document's outline: 1 for the highest
// heading, 0 if they say nothing of it.
func outlineLevel(props *tree) int {
	if props.at("w:outlineLvl") == nil {
		return 0
	}
	return number(props.val("w:outlineLvl"), 9) + 1
}

// inherit adds what a style does not say itself.
func (w wordStyles) inherit(s wordStyle) wordStyle {
	based := s.based
	for range maxStyles {
		from, ok := w[based]
		if !ok || based == "" {
			break
		}
		if s.outline == 0 {
			s.outline = from.outline
		}
		if s.list == noList {
			s.list = from.list
		}
		s.code, s.quote = s.code || from.code, s.quote || from.quote
		based = from.based
	}
	return s
}

// look returns how text looks by the properties of its run.
func (w wordStyles) look(props *tree) style {
	return style{
		code:   w[props.val("w:rStyle")].code || isCodeFont(props.at("w:rFonts").attr("w:ascii")),
		struck: props.isOn("w:strike") || props.isOn("w:dstrike"),
		raised: props.val("w:vertAlign") == "superscript",
		hidden: props.isOn("w:vanish"),
	}
}

func isCodeName(name string) bool {
	switch name {
	case "source code", "source text", "verbatim char", "html preformatted", "html code", "preformatted text",
		"plain text", "macro text", "code", "code block", "inline code", "teletype":
		return true
	}
	return false
}

func isCodeFont(font string) bool {
	font = strings.ToLower(font)
	for _, name := range []string{"courier", "consolas", "mono", "menlo", "monaco", "source code"} {
		if strings.Contains(font, name) && !strings.Contains(font, "monotype") {
			return true
		}
	}
	return false
}
