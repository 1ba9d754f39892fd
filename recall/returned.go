package recall

import (
	"strings"
	"unicode/utf8"
)

// SetReturned makes texts and images, in their order, the content of a tool result. Its Text is the texts, joined by
// line ends.
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

// Returned returns the content of a tool result as parts that are texts and images, in their order. Texts that nothing
// stands between are one, and no text is empty.
func (p Part) Returned() (all []Part) {
	from := 0
	addText := func(to int) {
		text := p.Text[from:to]
		if from > 0 {
			text = strings.TrimPrefix(text, "\n") // which joined it to the text before the image
		}
		if text != "" {
			all = append(all, Part{Type: Text, Text: text})
		}
		from = to
	}
	for i, source := range p.Images {
		if at := p.imageAt(i); at > from || i == 0 {
			addText(max(at, from))
		}
		all = append(all, Part{Type: Image, Source: source})
	}
	addText(len(p.Text))
	return all
}

// ReplaceText makes a text that a function made of the Text of a tool result its Text. An image that stands within it
// stays behind the same words if the function makes a beginning of the new text of them; otherwise it comes last.
func (p *Part) ReplaceText(text string, form func(string) string) {
	places := make([]int, 0, len(p.ImagesAt))
	for i := range p.ImagesAt {
		place, at := len(text), p.imageAt(i)
		if before := form(p.Text[:at]); at < len(p.Text) && strings.HasPrefix(text, before) {
			place = len(before)
		}
		places = append(places, place)
	}
	p.Text, p.ImagesAt = text, places
	p.dropLastPlaces()
}

// imageAt returns where in Text an image stands. Of a result whose Text is only its beginning, images that stand behind
// it come last.
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

// dropLastPlaces drops the places of images that all stand behind the text.
func (p *Part) dropLastPlaces() {
	for _, at := range p.ImagesAt {
		if at < len(p.Text) {
			return
		}
	}
	p.ImagesAt = nil
}
