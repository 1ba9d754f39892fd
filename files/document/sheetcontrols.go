package document

import (
	"maps"
	"slices"
	"strings"
)

// controls returns the boxes, buttons and labels that stand on a sheet, as Excel has them since 1997: their captions,
// and ☒ or ☐ for what can be ticked.
func (b *workbook) controls(links map[string]relation) (string, error) {
	var lines []string
	for _, id := range slices.Sorted(maps.Keys(links)) {
		link := links[id]
		if link.kind != "vmlDrawing" || link.external {
			continue
		}
		err := b.archive.optional(link.target, func(x *xmlReader) error {
			return x.find("v:shape", func(element) error {
				control := sheetControl{}
				err := control.read(x)
				if text := control.shown(); text != "" && b.archive.budget.handle(len(text)) {
					lines = append(lines, text)
				}
				return err
			})
		})
		if err != nil {
			return "", err
		}
	}
	return strings.Join(lines, "\n"), nil
}

type sheetControl struct {
	kind, caption string
	isChecked     bool
}

func (c *sheetControl) read(x *xmlReader) error {
	return x.each(func(e element) error {
		switch e.name {
		case "v:textbox":
			text, err := x.text()
			c.caption = onOneLine(text)
			return err
		case "ClientData":
			c.kind = e.attr("ObjectType")
			return c.read(x)
		case "Checked":
			text, err := x.text()
			c.isChecked = strings.TrimSpace(text) == "1"
			return err
		}
		return c.read(x)
	})
}

// shown returns the control as text. The frames of notes are controls, too.
func (c sheetControl) shown() string {
	switch c.kind {
	case "Checkbox", "Radio":
		if c.isChecked {
			return strings.TrimSpace("☒ " + c.caption)
		}
		return strings.TrimSpace("☐ " + c.caption)
	case "Button", "Label", "GBox":
		return c.caption
	}
	return ""
}
