package document

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"
)

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// isInvisible reports whether a character is not shown and changes no meaning, so that a search would miss the word
// around it: soft hyphens, blanks without width, byte order marks, and marks of the direction of writing. Joiners have
// a meaning in Persian and in emoji.
func isInvisible(r rune) bool {
	switch {
	case r == '\u00ad', r == '\u200b', r == '\u2060', r == '\ufeff', r == '\u200e', r == '\u200f',
		r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return true
	}
	return false
}

// visible returns a text without characters that are not shown.
func visible(text string) string {
	return strings.Map(func(r rune) rune {
		if isInvisible(r) {
			return -1
		}
		return r
	}, text)
}

// style is the formatting of a text, as far as Markdown keeps it.
type style struct {
	code, struck, raised, hidden bool
	href                         string // address to which the text links; empty: none
}

// with returns the style of a text with style inner within a text with style s.
func (s style) with(inner style) style {
	return style{s.code || inner.code, s.struck || inner.struck, s.raised || inner.raised, s.hidden || inner.hidden,
		cmp.Or(inner.href, s.href)}
}

// inline collects the text of a paragraph. Adjacent texts of one style are one part.
type inline struct {
	budget *budget
	parts  []part
	words  bool // there is more than blanks
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

// addWords adds a text. Line ends and other control characters become blanks.
func (in *inline) addWords(text string, s style) {
	in.add(strings.Map(func(r rune) rune {
		switch {
		case isInvisible(r):
			return -1
		case unicode.IsControl(r):
			return ' '
		}
		return r
	}, text), s)
}

func (in *inline) isEmpty() bool { return !in.words }

// isCode reports whether there is text and all of it is code.
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

// markdown returns the text with Markdown's marks.
func (in *inline) markdown() string {
	var b strings.Builder
	for i := 0; i < len(in.parts); {
		href := in.parts[i].href
		var linked strings.Builder
		for ; i < len(in.parts) && in.parts[i].href == href; i++ {
			next := ""
			if i+1 < len(in.parts) {
				next = string(in.parts[i+1].text)
			}
			linked.WriteString(in.parts[i].marked(b.Len()+linked.Len() > 0, next))
		}
		b.WriteString(link(linked.String(), href))
	}
	return b.String()
}

// marked returns the text with its marks placed inside its outer blanks. If follows is true, a raised number gets a ^,
// as in 10^6. next is the text behind it.
func (p part) marked(follows bool, next string) string {
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
		words = power(words, after+next)
	}
	if p.struck && !strings.Contains(words, "\n") {
		words = "~~" + words + "~~"
	}
	return before + words + after
}

// isExponent reports whether a raised text would change a number if it were not raised.
func isExponent(s string) bool {
	return strings.Trim(s, "0123456789+-−n") == ""
}

// isOneTerm reports whether a part of a formula needs no brackets.
func isOneTerm(text string) bool {
	isSign := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '.' }
	return !strings.ContainsFunc(text, isSign)
}

// power returns a raised text. It stands in brackets if its end would not be seen.
func power(raised, following string) string {
	next, _ := utf8.DecodeRuneInString(following)
	if isOneTerm(strings.TrimLeft(raised, "+-−")) && !unicode.IsLetter(next) && !unicode.IsDigit(next) {
		return "^" + raised
	}
	return "^(" + raised + ")"
}

// link returns a text as a link to an address. If the address does not lead outside the document, it returns only the
// text.
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

// pictureText returns the alternative text of a picture as it is shown: [Picture: the harbour]. It is empty if there is
// none.
func pictureText(alternative string) string {
	if alternative = onOneLine(alternative); alternative == "" {
		return ""
	}
	return "[Picture: " + alternative + "]"
}

// besideText returns the alternative text of something that has text of its own, such as a chart; nothing if that text
// says the same.
func besideText(alternative, own string) string {
	if alternative == "" || strings.Contains(onOneLine(own), alternative) {
		return ""
	}
	return "[Alternative text: " + alternative + "]"
}

// onOneLine returns a text with one blank between its words.
func onOneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
