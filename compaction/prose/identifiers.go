package prose

import (
	"iter"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxIdentifier bounds the characters of an identifier.
const maxIdentifier = 120

// Identifiers returns what a summary of a text must not reword: addresses, paths, ids, versions, dates, amounts, and
// names as in programs. They are in the text's order, each once.
func Identifiers(text string) []string {
	var all []string
	seen := map[string]bool{}
	for word := range eachIdentifier(text) {
		if !seen[word] {
			seen[word] = true
			all = append(all, word)
		}
	}
	return all
}

// eachIdentifier yields a text's identifiers, including repeated ones.
func eachIdentifier(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := 0; i < len(text); {
			r, size := utf8.DecodeRuneInString(text[i:])
			if separates(r) {
				i += size
				continue
			}
			end := wordEnd(text, i)
			word := trimmed(text[i:end])
			tag := word[:min(1, len(word))] == "/" && i > 0 && text[i-1] == '<'
			i = end
			if !tag && isIdentifier(word) && !yield(word) {
				return
			}
		}
	}
}

// wordEnd returns where a word ends. An address may contain signs that end other words.
func wordEnd(text string, from int) int {
	address := false
	for i, r := range text[from:] {
		if strings.HasPrefix(text[from+i:], "://") {
			address = true
		}
		end := from + i
		if r == ',' && end > from && end+1 < len(text) && isDigit(text[end-1]) && isDigit(text[end+1]) {
			continue
		}
		endsAddress := unicode.IsSpace(r) || strings.ContainsRune("\"'`<>)]}\\|", r) || Dense(r)
		if address && endsAddress || !address && separates(r) {
			return end
		}
	}
	return len(text)
}

// separates reports whether a character separates words. Characters of scripts without spaces do.
func separates(r rune) bool {
	switch {
	case r < utf8.RuneSelf:
		return r <= ' ' || strings.ContainsRune("\"'`<>()[]{}|,;=*!?^&", r)
	case r == utf8.RuneError:
		return true
	}
	return unicode.IsSpace(r) || Dense(r) || unicode.In(r, unicode.Ps, unicode.Pe, unicode.Pi, unicode.Pf, unicode.Po,
		unicode.C)
}

// Dense reports whether a character belongs to a script without spaces.
func Dense(r rune) bool {
	return r >= 0x0E00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai)
}

func trimmed(word string) string {
	word = strings.TrimRight(word, ".:-/\\@_~")
	return strings.TrimLeft(word, ":-")
}

// escaped matches a character as JSON may write it.
var escaped = regexp.MustCompile(`^(?:\\u[0-9a-fA-F]{4})+$`)

// isIdentifier decides by the signs in a word. If in doubt it returns true: an identifier too many costs a line, and
// one too few may be the one that matters.
func isIdentifier(word string) bool {
	n := utf8.RuneCountInString(word)
	if n < 2 || n > maxIdentifier {
		return false
	}
	s := signsOf(word)
	switch {
	case s.letters == 0 && s.digits == 0:
		return false
	case strings.Contains(word, "://"), s.at > 0 && s.dots > 0:
		return true
	case s.slashes > 0:
		return isPath(word, s)
	case s.backslashes > 0:
		return s.letters > 1 && n > 3 && !escaped.MatchString(word)
	case s.letters == 0:
		return s.digits >= 1 && (s.dots > 1 || s.marks > s.dots+strings.Count(word, ",")) // else it is a bare number
	case s.digits > 0:
		return n >= 4 || s.marks > 0
	}
	ending := strings.ToLower(word[strings.LastIndexByte(word, '.')+1:])
	return n > 3 && (s.inner > 0 || s.underscores > 0 || s.dots > 0 && endings[ending])
}

// signs counts a word's characters by kind. Marks are neither letters nor digits; inner are capital letters behind a
// small one.
type signs struct {
	letters, digits, dots, slashes, backslashes, underscores, at, marks, inner int
}

func signsOf(word string) (s signs) {
	small := false
	for _, r := range word {
		switch {
		case unicode.IsDigit(r):
			s.digits++
		case unicode.IsLetter(r):
			s.letters++
			if small && unicode.IsUpper(r) {
				s.inner++
			}
		default:
			s.marks++
		}
		small = unicode.IsLower(r)
		switch r {
		case '.':
			s.dots++
		case '/':
			s.slashes++
		case '\\':
			s.backslashes++
		case '_':
			s.underscores++
		case '@':
			s.at++
		}
	}
	return s
}

// isPath reports whether a word with a slash is a path, and not two words as in "and/or".
func isPath(word string, s signs) bool {
	return s.letters+s.digits > 1 && (s.slashes > 1 || s.marks > s.slashes || s.digits > 0 || word[0] == '/')
}

// endings are the endings of file names and hosts. A word with such an ending is an identifier.
var endings = setOf("go py js ts tsx jsx rs rb php kt swift java c h cc cpp cs sh sql md txt rst json yaml yml toml " +
	"xml ini cfg conf env lock mod sum proto html css csv xls xlsx doc docx ppt pptx odt pdf png jpg jpeg gif svg webp " +
	"mp3 mp4 wav zip gz tar log ipynb tf com org net io dev ai app edu gov de uk fr eu")

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(words) {
		set[w] = true
	}
	return set
}

// Mentions reports whether a folded text contains an identifier that is not part of a longer word. Case, and commas in
// numbers, do not matter.
func Mentions(lower, identifier string) bool { return has(lower, Folded(identifier)) }

// has reports whether a text contains an identifier that is not part of a longer word. Both are folded.
func has(lower, id string) bool {
	for from := 0; ; {
		i := strings.Index(lower[from:], id)
		if i < 0 {
			return false
		}
		i += from
		before, _ := utf8.DecodeLastRuneInString(lower[:i])
		after, _ := utf8.DecodeRuneInString(lower[i+len(id):])
		if !joins(before) && !joins(after) {
			return true
		}
		from = i + 1
	}
}

func joins(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) && !Dense(r)
}

// Folded returns a text in the form that Mentions compares: lower case, without commas in numbers.
func Folded(text string) string {
	text = strings.ToLower(text)
	if !strings.ContainsRune(text, ',') {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for i := range len(text) {
		if text[i] == ',' && i > 0 && i+1 < len(text) && isDigit(text[i-1]) && isDigit(text[i+1]) {
			continue
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Keywords returns the first most words of a text that carry its meaning: words of at least four letters, or pairs of
// characters in a script without spaces.
func Keywords(text string, most int) []string {
	var all []string
	noted := map[string]bool{}
	note := func(word string) {
		if len(all) < most && !noted[word] {
			noted[word] = true
			all = append(all, word)
		}
	}
	var word, run []rune
	flush := func() {
		if len(word) >= 4 {
			note(string(word))
		}
		word = word[:0]
	}
	for _, r := range strings.ToLower(text) {
		if Dense(r) {
			flush()
			if run = append(run, r); len(run) >= 2 {
				note(string(run[len(run)-2:]))
			}
			continue
		}
		run = run[:0]
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) {
			word = append(word, r)
			continue
		}
		if flush(); len(all) == most {
			return all
		}
	}
	flush()
	return all
}
