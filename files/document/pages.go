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
	line := 1
	for i, page := range pages {
		text.Pages[i] = line
		if page = laidOut(page); page != "" {
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
		return Text{}, scanned(len(pages))
	}
	return text, nil
}

func scanned(pages int) error {
	if pages == 1 {
		return unreadable("The file holds no text: its page is an image or empty. " + runOCR)
	}
	return unreadable("The file holds no text: its %d pages are images or empty. "+runOCR, pages)
}

const runOCR = "If it was scanned, run OCR on it and upload the result."

// laidOut returns the text of a page without typesetting: hyphenated words are joined, and lines are tidied.
func laidOut(page string) string {
	page = strings.ToValidUTF8(page, "\ufffd")
	page = softened.ReplaceAllString(lineEnds.Replace(page), string(joint))
	page = strings.Map(plain, page)
	page = ligatures.ReplaceAllStringFunc(page, norm.NFKC.String)
	page = broken.ReplaceAllString(page, "$1$2\n")
	page = hyphenated.ReplaceAllString(page, "$1$2\n")
	return tidyLines(page)
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
	case unicode.IsControl(r), r == '\u00ad', r == '\ufeff', r == '\uffff':
		return -1
	}
	return r
}

// joint is the character that PDFium writes in place of a hyphen and a line end within a word.
const joint = '\ufffe'

var (
	softened  = regexp.MustCompile(`\x{ad}[-\x{2010}]?\n`)
	ligatures = regexp.MustCompile(`[\x{fb00}-\x{fb4f}]+`)

	// The rest of a hyphenated word is joined to its beginning, and the line ends behind the word. Lower case behind a
	// hyphen at the end of a line is the rest of a word.
	broken     = regexp.MustCompile(`(\S)\x{fffe}\n?(\S*)[ \n]?`)
	hyphenated = regexp.MustCompile(`(\p{L}\p{L})[-\x{2010}]\n(\p{Ll}\S*)[ \n]?`)
)
