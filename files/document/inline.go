package document

import (
	"cmp"
	"strings"
	"unicode"
)

// style is the formatting of a text that Markdown keeps.
type style struct {
	code, struck, raised, hidden bool
	href                         string // where the text leads; empty for nowhere
}

// with returns the style of a text within another.
func (s style) with(inner style) style {
	return style{s.code || inner.code, s.struck || inner.struck, s.raised || inner.raised, s.hidden || inner.hidden,
		cmp.Or(inner.href, s.href)}
}

// inline collects the text of a paragraph. Neighbours of one style are one part.
type inline struct {
	budget *budget
	parts  []part
	words  bool // whether there is more than blanks
}

type part struct {
	text []byte
	style
}

func (in *inline) add(text string, s style) {
	if text == "" || !in.budget.handle(len(text)) {
		return
	}
	in.words = in.words || !isBlank(text)
	if n := len(in.parts); n > 0 && in.parts[n-1].style == s {
		in.parts[n-1].text = append(in.parts[n-1].text, text...)
		return
	}
	if in.budget.handle(len(s.href)) {
		in.parts = append(in.parts, part{[]byte(text), s})
	}
}

// addWords adds a text in which line ends and other controls are blanks.
func (in *inline) addWords(text string, s style) {
	in.add(strings.Map(func(r rune) rune {
		switch {
		case r == '\u00ad' || r == '\ufeff': // a soft hyphen, a mark
			return -1
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, text), s)
}

func (in *inline) isEmpty() bool { return !in.words }

// isCode reports whether there is text, and all of it is code.
func (in *inline) isCode() bool {
	for _, p := range in.parts {
		if !p.code && !isBlank(string(p.text)) {
			return false
		}
	}
	return !in.isEmpty()
}

func (in *inline) plain() string {
	var b strings.Builder
	for _, p := range in.parts {
		b.Write(p.text)
	}
	return b.String()
}

// markdown returns the text with its marks.
func (in *inline) markdown() string {
	var b strings.Builder
	for i := 0; i < len(in.parts); {
		href := in.parts[i].href
		var linked strings.Builder
		for ; i < len(in.parts) && in.parts[i].href == href; i++ {
			linked.WriteString(in.parts[i].marked(b.Len()+linked.Len() > 0))
		}
		b.WriteString(link(linked.String(), href))
	}
	return b.String()
}

// marked returns the text with its marks inside of its outer blanks. A raised number that follows something gets a ^,
// as in 10^6.
func (p part) marked(follows bool) string {
	text := string(p.text)
	words := strings.TrimSpace(text)
	if words == "" {
		return text
	}
	before, after, _ := strings.Cut(text, words)
	switch {
	case p.code && !strings.ContainsAny(words, "`\n"):
		words = "`" + words + "`"
	case p.raised && follows && before == "" && isExponent(words):
		words = "^" + words
	}
	if p.struck && !strings.Contains(words, "\n") {
		words = "~~" + words + "~~"
	}
	return before + words + after
}

// isExponent reports whether a raised text would change a number if it stood on the line.
func isExponent(s string) bool {
	return strings.Trim(s, "0123456789+-−n") == ""
}

// link returns a text that leads to an address; the text alone where the address leads nowhere outside of the document.
func link(text, href string) string {
	words := strings.TrimSpace(text)
	switch {
	case href == "" || words == "" || !isAddress(href):
		return text
	case words == href:
		return text
	case strings.ContainsAny(href, " ()"):
		href = "<" + href + ">"
	}
	before, after, _ := strings.Cut(text, words)
	return before + "[" + strings.ReplaceAll(words, "\n", " ") + "](" + href + ")" + after
}

func isAddress(href string) bool {
	scheme, _, ok := strings.Cut(href, ":")
	return ok && isScheme[strings.ToLower(scheme)] && len(href) <= maxLinkBytes && !strings.ContainsAny(href, "<>") &&
		!strings.ContainsFunc(href, unicode.IsControl)
}

var isScheme = setOf("http https mailto ftp tel news sftp ssh git doi urn")
