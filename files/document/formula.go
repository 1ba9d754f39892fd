package document

import "strings"

// formula adds a formula in Office Math or MathML on one line: fractions as a/b, raised text as ^, lowered text as _.
// More than one character gets brackets.
func formula(x *xmlReader, in *inline) error {
	var b strings.Builder
	err := mathPart(x, &b)
	in.addWords(b.String(), style{})
	return err
}

// mathSigns are written before these elements of Office Math and MathML.
var mathSigns = map[string]string{"m:sup": "^", "m:sub": "_", "m:num": "", "m:den": "/", "m:rad": "√", "msqrt": "√"}

// mathBetween are written between the children of these MathML elements.
var mathBetween = map[string]string{"mfrac": "/", "msup": "^", "msub": "_"}

func mathPart(x *xmlReader, b *strings.Builder) error {
	return x.each(func(e element) error { return mathElement(x, e, b) })
}

func mathElement(x *xmlReader, e element, b *strings.Builder) error {
	name := e.name
	if sign, ok := mathSigns[name]; ok {
		return mathGroup(x, b, sign, func(within *strings.Builder) error { return mathPart(x, within) })
	}
	if between, ok := mathBetween[name]; ok {
		first := true
		return x.each(func(e element) error {
			sign := between
			if first {
				sign, first = "", false
			}
			return mathGroup(x, b, sign, func(within *strings.Builder) error { return mathElement(x, e, within) })
		})
	}
	switch name {
	case "m:t", "mi", "mn", "mo", "mtext":
		text, err := x.text()
		b.WriteString(strings.TrimSpace(text))
		return err
	case "annotation", "annotation-xml":
		return nil
	}
	return mathPart(x, b)
}

// mathGroup writes what read reads, in brackets if it has more than one character.
func mathGroup(x *xmlReader, b *strings.Builder, sign string, read func(*strings.Builder) error) error {
	var within strings.Builder
	err := read(&within)
	text := within.String()
	if len([]rune(text)) > 1 {
		text = "(" + text + ")"
	}
	if x.budget.handle(len(text)) && text != "" {
		b.WriteString(sign + text)
	}
	return err
}
