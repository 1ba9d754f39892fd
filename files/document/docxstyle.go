package document

import "strings"

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
