package document

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// joinPages joins the pages of a document. Each page but the last ends in an empty line. A page without text is an
// empty line.
func joinPages(pages []string) (Text, error) {
	var b strings.Builder
	text := Text{Pages: make([]int, len(pages))}
	line, all := 1, make([]string, len(pages))
	for i, page := range pages {
		all[i] = unset(page)
	}
	hyphens := newHyphenation(all)
	for i, page := range all {
		text.Pages[i] = line
		if page = tidyLines(hyphens.mend(page)); page != "" {
			page += "\n"
		}
		if i < len(pages)-1 || page == "" {
			page += "\n"
		}
		line += strings.Count(page, "\n")
		if b.WriteString(page); b.Len() > MaxTextBytes {
			return Text{}, tooMuchText()
		}
	}
	if text.Text = b.String(); isBlank(text.Text) {
		return text, scanned(len(pages))
	}
	return text, nil
}

// isTooLong reports whether an error says that there is too much text.
func isTooLong(err error) bool { return err.Error() == tooMuchText().Error() }

func scanned(pages int) error {
	if pages == 1 {
		return unreadable("The file holds no text: its page is an image or empty. " + runOCR + orSetOCR)
	}
	return unreadable("The file holds no text: its %d pages are images or empty. "+runOCR+orSetOCR, pages)
}

const runOCR = "If it was scanned, run OCR on it and upload the result."

// unset returns the text of a page without typesetting, but with joints where words are broken at the end of a line.
func unset(page string) string {
	page = strings.ToValidUTF8(page, "\ufffd")
	page = softened.ReplaceAllString(lineEnds.Replace(page), string(joint))
	page = strings.Map(plain, page)
	return ligatures.ReplaceAllStringFunc(page, norm.NFKC.String)
}

// tidyLines drops blanks at the ends of lines, and empty lines at both ends of the text and behind other empty lines.
func tidyLines(text string) string {
	text = emptyLines.ReplaceAllString(trimEnds(text), "\n\n")
	return strings.Trim(text, "\n")
}

var emptyLines = regexp.MustCompile(`\n{3,}`)

var lineEnds = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\f", "\n", "\u2028", "\n", "\u2029", "\n\n")

// plain drops characters that only typesetting needs, and replaces wide blanks by plain ones.
func plain(r rune) rune {
	switch {
	case r == '\n', r == '\t', r == joint:
		return r
	case r == 0:
		return unicode.ReplacementChar
	case r == '\u00a0', r == '\u202f', r == '\u2007':
		return ' '
	case r == '\u00ad': // a page shows it
		return '-'
	case unicode.IsControl(r), isInvisible(r), r == '\uffff':
		return -1
	}
	return r
}

var (
	softened  = regexp.MustCompile(`\x{ad}[-\x{2010}]?\n`)
	ligatures = regexp.MustCompile(`[\x{fb00}-\x{fb4f}]+`)
)
