package document

import (
	"encoding/xml"
	"strings"
)

// wordStyle is what is kept of a style, with what it takes from those it is based on.
type wordStyle struct {
	name        string // in lower case
	outline     int    // 1 for the highest heading, 0 for none
	list        listPlace
	code, quote bool
	based       string
}

// wordStyles are those of a document, by id. Absent ones are plain.
type wordStyles map[string]wordStyle

// maxStyles is how many styles an id leads through.
const maxStyles = 20

func readWordStyles(a *archive, part string) (wordStyles, error) {
	styles := wordStyles{"": {list: noList}}
	err := a.optional(part, func(x *xmlReader) error {
		return x.find("w:style", func(e xml.StartElement) error {
			s := wordStyle{list: noList}
			err := s.read(x)
			styles[attr(e, "w:styleId")] = s
			return err
		})
	})
	whole := make(wordStyles, len(styles))
	for id, s := range styles {
		whole[id] = styles.inherit(s)
	}
	return whole, err
}

func (s *wordStyle) read(x *xmlReader) error {
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "w:name":
			s.name = strings.ToLower(attr(e, "w:val"))
			if level, ok := strings.CutPrefix(s.name, "heading "); ok && s.outline == 0 {
				s.outline = number(level, 0)
			}
			s.code = s.code || isCodeName(s.name)
			s.quote = strings.Contains(s.name, "quot") || s.name == "block text"
		case "w:basedOn":
			s.based = attr(e, "w:val")
		case "w:pPr":
			return x.walk(func(e xml.StartElement) error {
				switch x.name(e) {
				case "w:outlineLvl":
					s.outline = number(attr(e, "w:val"), 9) + 1
				case "w:numPr":
					return s.list.read(x)
				}
				return nil
			}, nil)
		case "w:rPr":
			return x.walk(func(e xml.StartElement) error {
				s.code = s.code || x.name(e) == "w:rFonts" && isCodeFont(attr(e, "w:ascii"))
				return nil
			}, nil)
		}
		return nil
	}, nil)
}

// inherit takes what a style does not say itself from those it is based on.
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

func isCodeName(name string) bool {
	switch name {
	case "source code", "source text", "verbatim char", "html preformatted", "html code", "preformatted text", "plain text", "macro text",
		"code", "code block", "inline code", "teletype":
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

// look is how a run of text looks.
type look struct{ code, struck, raised, hidden bool }

// look reads the properties of a run.
func (w wordStyles) look(x *xmlReader) (l look, err error) {
	err = x.walk(func(e xml.StartElement) error {
		val := attr(e, "w:val")
		on := val != "0" && val != "false" && val != "off"
		switch x.name(e) {
		case "w:rStyle":
			l.code = l.code || w[val].code
		case "w:rFonts":
			l.code = l.code || isCodeFont(attr(e, "w:ascii"))
		case "w:strike", "w:dstrike":
			l.struck = on
		case "w:vanish":
			l.hidden = on
		case "w:vertAlign":
			l.raised = val == "superscript"
		}
		return nil
	}, nil)
	return l, err
}
