package document

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// drawn returns what is drawn on a sheet: text boxes, charts, diagrams and alternative texts of pictures, from top to
// bottom. It notes pictures without such a text.
func (b *workbook) drawn(links map[string]relation, cells func(string) []string) (string, error) {
	var all []anchored
	for _, id := range slices.Sorted(maps.Keys(links)) {
		link := links[id]
		if link.kind != "drawing" || link.external || !b.archive.has(link.target) {
			continue
		}
		within, err := b.archive.relations(link.target)
		if err != nil {
			return "", err
		}
		d := &sheetDrawing{drawing: drawing{archive: b.archive, links: within, cells: cells}}
		if err := b.archive.part(link.target, d.anchors); err != nil {
			return "", err
		}
		all = append(all, d.all...)
	}
	slices.SortStableFunc(all, func(a, b anchored) int {
		return cmp.Or(cmp.Compare(a.row, b.row), cmp.Compare(a.col, b.col))
	})
	var texts []string
	for _, one := range all {
		if text := one.md.text(); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n"), nil
}

// anchored is something that is drawn on a sheet, with the cell of its upper left corner.
type anchored struct {
	row, col     int
	md           *markdown
	alternatives []string // of what is no picture
}

// sayAlternatives adds the alternative texts.
func (a *anchored) sayAlternatives() {
	for _, text := range a.alternatives {
		if a.md.lines == 0 {
			a.md.paragraph(pictureText(text))
		} else {
			a.md.paragraph(besideText(text, a.md.text()))
		}
	}
}

// sheetDrawing is the state of reading what is drawn on a sheet.
type sheetDrawing struct {
	drawing

	all []anchored
}

// anchors reads the things that are drawn.
func (d *sheetDrawing) anchors(x *xmlReader) error {
	return x.each(func(e element) error {
		switch e.name {
		case "xdr:twoCellAnchor", "xdr:oneCellAnchor", "xdr:absoluteAnchor":
			one := anchored{md: newMarkdown(d.archive.budget)}
			d.md = one.md
			err := d.shapes(x, &one)
			one.sayAlternatives()
			d.all = append(d.all, one)
			return err
		case "mc:Fallback":
			return nil
		}
		return d.anchors(x)
	})
}

func (d *sheetDrawing) shapes(x *xmlReader, one *anchored) error {
	return x.each(func(e element) error {
		switch e.name {
		case "xdr:from":
			return x.each(func(e element) error {
				text, err := x.text()
				switch e.name {
				case "xdr:row":
					one.row = number(text, 0)
				case "xdr:col":
					one.col = number(text, 0)
				}
				return err
			})
		case "xdr:cNvPr":
			if text := alternative(e); text != "" {
				one.alternatives = append(one.alternatives, text)
			}
		case "xdr:txBody":
			return d.paragraphs(x, d.md, false)
		case "c:chart", "cx:chart":
			return d.chart(e.attr("r:id"))
		case "dgm:relIds":
			return d.diagram(e.attr("r:dm"))
		case "xdr:pic":
			return d.sheetPicture(x)
		case "mc:Fallback":
			return nil
		}
		return d.shapes(x, one)
	})
}

// sheetPicture adds the alternative text of a picture, or notes the picture.
func (d *sheetDrawing) sheetPicture(x *xmlReader) error {
	text, blip := "", ""
	err := d.pictureParts(x, &text, &blip)
	shown := pictureText(text)
	d.md.paragraph(shown + d.archive.budget.omitted.picture(picturePart(d.links[blip].target), shown != ""))
	return err
}

// pictureParts finds the alternative text of a picture, and the relation to its bytes.
func (d *sheetDrawing) pictureParts(x *xmlReader, text, blip *string) error {
	return x.each(func(e element) error {
		switch e.name {
		case "xdr:cNvPr":
			*text = alternative(e)
		case "a:blip":
			*blip = e.attr("r:embed")
		}
		return d.pictureParts(x, text, blip)
	})
}

// sheetComment is a comment on a cell.
type sheetComment struct{ cell, author, text string }

// comments returns the notes and the threaded comments on a sheet's cells. For programs that do not know threads, a
// workbook has each thread as a note, too; these are left out.
func (b *workbook) comments(links map[string]relation) (string, error) {
	var notes, threads []sheetComment
	for _, id := range slices.Sorted(maps.Keys(links)) {
		var err error
		switch link := links[id]; {
		case link.external:
		case link.kind == "comments":
			notes, err = b.notes(link.target, notes)
		case link.kind == "threadedComment":
			threads, err = b.threads(link.target, threads)
		}
		if err != nil {
			return "", err
		}
	}
	threaded := map[string]bool{}
	for _, thread := range threads {
		threaded[thread.cell] = true
	}
	var lines []string
	for _, note := range notes {
		if !threaded[note.cell] || !strings.HasPrefix(note.author, "tc=") {
			lines = append(lines, note.shown())
		}
	}
	for _, thread := range threads {
		lines = append(lines, thread.shown())
	}
	return strings.Join(lines, "\n\n"), nil
}

func (c sheetComment) shown() string {
	author := c.author
	if strings.HasPrefix(author, "tc=") {
		author = ""
	}
	return commentText(author, c.cell, trimLines(strings.ReplaceAll(c.text, "\r\n", "\n")))
}

// notes reads the old kind of comments.
func (b *workbook) notes(part string, all []sheetComment) ([]sheetComment, error) {
	var authors []string
	err := b.archive.optional(part, func(x *xmlReader) error {
		return x.each(func(element) error {
			return x.each(func(element) error { // authors, commentList
				return x.each(func(e element) error {
					if e.name == "author" {
						author, err := x.text()
						authors = append(authors, author)
						return err
					}
					if e.name != "comment" {
						return nil
					}
					c := sheetComment{cell: e.attr("ref")}
					if i := number(e.attr("authorId"), -1); i >= 0 && i < len(authors) {
						c.author = authors[i]
					}
					err := x.find("t", func(element) error {
						text, err := x.text()
						c.text += text
						return err
					})
					all = b.kept(all, c)
					return err
				})
			})
		})
	})
	return all, err
}

// threads reads the new kind of comments, with the answers to them.
func (b *workbook) threads(part string, all []sheetComment) ([]sheetComment, error) {
	err := b.archive.find(part, "threadedComment", func(x *xmlReader, e element) error {
		c := sheetComment{cell: e.attr("ref"), author: b.people[e.attr("personId")]}
		err := x.find("text", func(element) error {
			text, err := x.text()
			c.text = text
			return err
		})
		all = b.kept(all, c)
		return err
	})
	return all, err
}

// kept adds a comment with a text.
func (b *workbook) kept(all []sheetComment, c sheetComment) []sheetComment {
	if isBlank(c.text) || !b.archive.budget.handle(len(c.text)) {
		return all
	}
	// Excel begins a note with its author's name.
	c.text = strings.TrimPrefix(strings.TrimSpace(c.text), c.author+":")
	return append(all, c)
}

// inputMessages reads what a sheet shows to who fills in a cell, of its data validations.
func (b *workbook) inputMessages(part string) (string, error) {
	if !b.prompted[part] {
		return "", nil
	}
	var lines []string
	err := b.archive.find(part, "dataValidation", func(x *xmlReader, e element) error {
		cells := e.attr("sqref")
		err := x.find("sqref", func(element) (err error) { // in an extension of Excel 2010
			cells, err = x.text()
			return err
		})
		title, message := onOneLine(e.attr("promptTitle")), trimLines(numberedCharacters(e.attr("prompt")))
		isShown := e.attr("showInputMessage") == "1" || e.attr("showInputMessage") == "true"
		if title != "" && message != "" {
			title += ": "
		}
		if text := title + message; isShown && text != "" && b.archive.budget.handle(len(text)+len(cells)) {
			lines = append(lines, "Input message on "+clipped(onOneLine(cells), maxPlaceBytes)+": "+text)
		}
		return err
	})
	return strings.Join(lines, "\n\n"), err
}
