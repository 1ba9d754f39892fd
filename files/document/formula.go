package document

import (
	"encoding/xml"
	"strings"
)

// formula adds a formula of Office Math on one line: a fraction as (a)/(b), raised as ^, lowered as _.
func formula(x *xmlReader, in *inline) error {
	var b strings.Builder
	err := formulaPart(x, &b)
	in.addWords(b.String(), style{})
	return err
}

func formulaPart(x *xmlReader, b *strings.Builder) error {
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "m:t":
			text, err := x.text()
			b.WriteString(text)
			return err
		case "m:sup":
			return group(x, b, "^")
		case "m:sub":
			return group(x, b, "_")
		case "m:num":
			return group(x, b, "")
		case "m:den":
			return group(x, b, "/")
		case "m:rad":
			return group(x, b, "√")
		}
		return formulaPart(x, b)
	}, nil)
}

// group puts brackets around more than a character.
func group(x *xmlReader, b *strings.Builder, sign string) error {
	var within strings.Builder
	err := formulaPart(x, &within)
	text := within.String()
	x.budget.handle(len(text))
	if len([]rune(text)) > 1 {
		text = "(" + text + ")"
	}
	if text != "" {
		b.WriteString(sign + text)
	}
	return err
}
