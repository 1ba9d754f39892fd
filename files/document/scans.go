package document

import (
	"slices"
	"strings"
)

// readByOCR is the first line of a page that OCR read.
const readByOCR = "[Read by OCR]"

// read tells that pages of a document are read.
func (l *PageLog) read(pages, total int) {
	if l != nil && l.Read != nil {
		l.Read(pages, total)
	}
}

// withOCRRemedy says of pages without text what would have them read.
func withOCRRemedy(all []Omission) []Omission {
	for i := range all {
		if all[i].Kind == pageUnread {
			all[i].Remedy = OCRSetting + " would have them read"
		}
	}
	return all
}

// WithPages returns a PDF's text with pages that a program read by OCR, by their numbers from 1. They stand before what
// the text has of these pages, below a line that says so. why says why other pages have no text. *UnreadableError if
// there is no text at all, or too much.
func (t Text) WithPages(read map[int]string, program, why string) (Text, error) {
	texts := t.byPage()
	var numbers, unread []int
	scanned := make([]string, len(texts))
	for _, n := range t.Unread {
		if n > len(texts) || isBlank(read[n]) {
			unread = append(unread, n)
			continue
		}
		numbers = append(numbers, n)
		scanned[n-1] = unset(read[n])
	}
	hyphens := newHyphenation(scanned)
	var b strings.Builder
	out := t
	out.Pages, out.Unread = make([]int, len(texts)), unread
	line := 1
	for i, page := range texts {
		out.Pages[i] = line
		if scanned[i] != "" {
			page = strings.TrimRight(readByOCR+"\n"+tidyLines(hyphens.mend(scanned[i]))+"\n\n"+page, "\n")
		}
		if page = strings.TrimRight(page, "\n"); page != "" {
			page += "\n"
		}
		if i < len(texts)-1 || page == "" {
			page += "\n"
		}
		line += strings.Count(page, "\n")
		if b.WriteString(page); b.Len() > MaxTextBytes {
			return Text{}, tooMuchText()
		}
	}
	if out.Text = b.String(); isBlank(out.Text) {
		return Text{}, unreadable("The file holds no text: its pages are images or empty, and %s found no text in them (%s).",
			program, why)
	}
	out.Omitted = slices.DeleteFunc(slices.Clone(t.Omitted), func(o Omission) bool { return o.Kind == pageUnread })
	if len(unread) > 0 {
		out.Omitted = append(out.Omitted, Omission{Kind: pageUnread, Count: len(unread), Where: Pages(unread),
			Remedy: clipped(why, maxRemedyBytes)})
	}
	if len(numbers) > 0 {
		out.ReadBy = append(out.ReadBy, ReadBy{ByOCR, program, Pages(numbers)})
	}
	return out, nil
}

// byPage returns the text of each page.
func (t Text) byPage() []string {
	lines := strings.SplitAfter(t.Text, "\n")
	pages := make([]string, len(t.Pages))
	for i, first := range t.Pages {
		end := len(lines) + 1
		if i+1 < len(t.Pages) {
			end = t.Pages[i+1]
		}
		pages[i] = strings.Join(lines[min(first-1, len(lines)):min(max(first, end)-1, len(lines))], "")
	}
	return pages
}

// PictureText returns the text that a program read of a picture. A picture may have several pages, which a form feed
// ends. *UnreadableError if there is no text.
func PictureText(read, program string) (Text, error) {
	pages := strings.Split(strings.TrimSuffix(strings.TrimRight(read, "\n "), "\f"), "\f")
	for i, page := range pages {
		if !isBlank(page) {
			pages[i] = readByOCR + "\n" + page
		}
	}
	text, err := joinPages(pages)
	if err != nil {
		if isBlank(read) {
			err = unreadable("The picture holds no text that %s can read.", program)
		}
		return Text{}, err
	}
	if len(pages) == 1 {
		text.Pages = nil
	}
	text.Omitted, text.ReadBy = []Omission{}, []ReadBy{{Kind: ByOCR, Program: program}}
	return text, nil
}
