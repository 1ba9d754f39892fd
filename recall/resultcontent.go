package recall

import (
	"strings"
	"unicode/utf8"
)

// SetReturned makes texts and images the content of a tool result, in their order. The result's Text is the texts
// joined by line ends.
func (p *Part) SetReturned(content []Part) {
	var text strings.Builder
	texts := 0
	p.Images, p.ImagesAt = nil, nil
	for _, c := range content {
		if c.Type == Image {
			p.Images, p.ImagesAt = append(p.Images, c.Source), append(p.ImagesAt, text.Len())
			continue
		}
		if texts++; texts > 1 {
			text.WriteByte('\n')
		}
		text.WriteString(c.Text)
	}
	p.Text = text.String()
	p.dropLastPlaces()
}

// Returned returns the content of a tool result as text and image parts, in order. Texts with nothing between them
// become one part, and no text is empty.
func (p Part) Returned() (all []Part) {
	from := 0
	addText := func(to int) {
		text := p.Text[from:to]
		if from > 0 {
			text = strings.TrimPrefix(text, "\n") // the line end that joined it to the text before the image
		}
		if text != "" {
			all = append(all, Part{Type: Text, Text: text})
		}
		from = to
	}
	for i, source := range p.Images {
		if offset := p.imageAt(i); offset > from || i == 0 {
			addText(max(offset, from))
		}
		all = append(all, Part{Type: Image, Source: source})
	}
	addText(len(p.Text))
	return all
}

// ReplaceText sets a tool result's Text to text, which form made from the old Text. An image within the old Text stays
// behind the same words if form turns these words into a beginning of the new text; otherwise the image moves to the
// end.
func (p *Part) ReplaceText(text string, form func(string) string) {
	places := make([]int, 0, len(p.ImagesAt))
	for i := range p.ImagesAt {
		place, offset := len(text), p.imageAt(i)
		if before := form(p.Text[:offset]); offset < len(p.Text) && strings.HasPrefix(text, before) {
			place = len(before)
		}
		places = append(places, place)
	}
	p.Text, p.ImagesAt = text, places
	p.dropLastPlaces()
}

// imageAt returns where in Text image i stands. If Text is only the beginning of the result, images behind it count as
// standing at its end.
func (p Part) imageAt(i int) int {
	known := len(p.Text)
	if p.Clip != nil {
		known = min(known, p.Clip.Shown)
	}
	if i >= len(p.ImagesAt) || p.ImagesAt[i] < 0 || p.ImagesAt[i] > known ||
		p.ImagesAt[i] < len(p.Text) && !utf8.RuneStart(p.Text[p.ImagesAt[i]]) {
		return len(p.Text)
	}
	return p.ImagesAt[i]
}

// dropLastPlaces drops the places of images if all images stand at the end.
func (p *Part) dropLastPlaces() {
	for _, at := range p.ImagesAt {
		if at < len(p.Text) {
			return
		}
	}
	p.ImagesAt = nil
}
