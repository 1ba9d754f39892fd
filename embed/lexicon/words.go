package lexicon

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// word is a word of a text, as it is looked up. at is where it begins; negative for a whole of several parts, which
// is no name.
type word struct {
	text string
	at   int
}

// Limits of a whole whose parts - or _ joins: longer ones are lists and sentences.
const (
	maxJoined      = 4
	maxJoinedBytes = 40
)

// eachWord calls found with every word of text, and with the parts of a word before the whole.
func eachWord(text string, found func(word)) {
	for i := 0; i < len(text); {
		k, size := kindAt(text, i)
		switch k {
		case separator, mark:
			i += size
		case unspace:
			i = eachPair(text, i, found)
		case emoji:
			found(word{text[i : i+size], i})
			i += size
		default:
			if end := plainEnd(text, i); end > 0 {
				found(word{text[i:end], i})
				i = end
			} else {
				i = eachJoined(text, i, found)
			}
		}
	}
}

// plainEnd returns where a word ends that is one in every reading, as most are: letters of ASCII, all but the first in
// lower case, that nothing joins to others. It is 0 of other words.
func plainEnd(text string, i int) int {
	if !isLetter(text[i]) {
		return 0
	}
	for i++; i < len(text) && text[i] >= 'a' && text[i] <= 'z'; {
		i++
	}
	if i < len(text) && (text[i] >= utf8.RuneSelf || asciiKinds[text[i]] != separator) ||
		i+1 < len(text) && joins(text, i, span{}) {
		return 0
	}
	return i
}

// span is where a word begins and ends.
type span struct{ from, to int }

// eachJoined finds the words at text[start:] that single joiners connect, and returns where the last ends.
func eachJoined(text string, start int, found func(word)) int {
	var all [maxJoined + 1]span
	n, i := 0, start
	for {
		end := wordEnd(text, i)
		all[n] = span{i, end}
		n++
		i = end
		if n > maxJoined || end+1 >= len(text) || !joins(text, end, all[0]) {
			break
		}
		if k, _ := kindAt(text, end+1); !begins(k) {
			break
		}
		i++
	}
	return eachOf(text, all[:n], i, found)
}

// begins reports whether a word that can be joined to another begins with a character.
func begins(k kind) bool { return k == upper || k == lower || k == digit }

// eachOf finds the words at the spans that joiners connect, and their whole. If they are too many, it finds the words
// of the first maxJoined alone, and returns where these end.
func eachOf(text string, all []span, end int, found func(word)) int {
	if len(all) > maxJoined {
		all = all[:maxJoined]
		for _, s := range all {
			eachPart(text, s, found)
		}
		return all[maxJoined-1].to
	}
	number := grouped(text, all)
	if number != "" {
		found(word{number, -1})
		if text[all[0].to] != '.' {
			return end
		}
	}
	for _, s := range all { // of 1.234, which may be a fraction, all is found
		eachPart(text, s, found)
	}
	if whole := joined(text, all); whole != "" {
		found(word{whole, -1})
	}
	return end
}

// joins reports whether the character at text[i:] may join the words around it.
func joins(text string, i int, first span) bool {
	switch text[i] {
	case '-', '_':
		return true
	case ',', '\'':
		return groups(text, i, first)
	case '.': // of H.264, or of 18.500
		return isLetter(text[i-1]) && isDigit(text[i+1]) || groups(text, i, first)
	}
	return false
}

// groups reports whether the character at text[i:] may separate the thousands of a number.
func groups(text string, i int, first span) bool {
	return i+3 < len(text) && isDigits(text[i+1:i+4]) && (i+4 == len(text) || !isDigit(text[i+4])) &&
		first.to-first.from <= 3 && isDigits(text[first.from:first.to])
}

// grouped returns the number whose thousands the spans are, without what separates them; empty if they are none.
func grouped(text string, all []span) string {
	if len(all) < 2 || text[all[0].to] == '-' {
		return ""
	}
	var number strings.Builder
	for i, s := range all {
		part := text[s.from:s.to]
		if !isDigits(part) || i > 0 && len(part) != 3 || len(part) > 3 || i > 0 && text[s.from-1] != text[all[0].to] {
			return ""
		}
		number.WriteString(part)
	}
	return number.String()
}

// joined returns the whole of several words, without what joins them; empty if they are one word, numbers or too long.
func joined(text string, all []span) string {
	from, to := all[0].from, all[len(all)-1].to
	if len(all) < 2 || to-from > maxJoinedBytes || continues(text, from) || strings.Contains(text[from:to], ",") ||
		!slices.ContainsFunc(all, func(s span) bool { return !isDigits(text[s.from:s.to]) }) {
		return ""
	}
	var whole strings.Builder
	for _, s := range all {
		whole.WriteString(text[s.from:s.to])
	}
	return whole.String()
}

// continues reports whether the words at text[at:] are the rest of more than maxJoined.
func continues(text string, at int) bool {
	return at > 1 && (text[at-1] == '-' || text[at-1] == '_') && (isDigit(text[at-2]) || isLetter(text[at-2]))
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigits(text string) bool {
	for i := range len(text) {
		if !isDigit(text[i]) {
			return false
		}
	}
	return text != ""
}

// wordEnd returns where the word at text[i:] ends.
func wordEnd(text string, i int) int {
	for i < len(text) {
		k, size := kindAt(text, i)
		if k == separator || k == unspace || k == emoji {
			break
		}
		i += size
	}
	return i
}

// eachPart finds the parts of a word, and the word itself if it has several.
func eachPart(text string, at span, found func(word)) {
	part, last := at.from, at.from
	previous := separator
	for i := at.from; i < at.to; {
		k, size := kindAt(text, i)
		switch {
		case k == upper && (previous == lower || previous == digit && lowerAt(text, i+size)): // read|All, utf8|String, H2O
			eachHalf(text, span{part, i}, found)
			part = i
		case k == lower && previous == upper && last > part && !pluralAt(text, i): // HTTP|Server
			eachHalf(text, span{part, last}, found)
			part = last
		}
		if k != mark {
			previous, last = k, i
		}
		i += size
	}
	eachHalf(text, span{part, at.to}, found)
	if part > at.from {
		found(word{text[at.from:at.to], at.from})
		if letters := at.from + firstDigit(text[at.from:at.to]); letters > part { // MySQL8
			found(word{text[at.from:letters], at.from})
		}
	}
}

// firstDigit returns where the first digit of a text is; negative if it has none.
func firstDigit(text string) int { return strings.IndexAny(text, "0123456789") }

// eachHalf finds a part and, if that is letters and a number, both of these.
func eachHalf(text string, at span, found func(word)) {
	part := text[at.from:at.to]
	if i := boundary(part); i > 0 {
		found(word{part[:i], at.from})
		found(word{part[i:], at.from + i})
	}
	found(word{part, at.from})
}

// boundary returns where the only place is at which a part has letters on one side and digits on the other; 0 if it has
// none, or what stands behind a number is one letter or an ordinal's ending.
func boundary(part string) (at int) {
	for i := 1; i < len(part); i++ {
		if part[i] >= utf8.RuneSelf {
			return 0
		}
		if isDigit(part[i]) == isDigit(part[i-1]) {
			continue
		}
		if at > 0 {
			return 0
		}
		at = i
	}
	if at > 0 && isDigit(part[0]) {
		switch rest := strings.ToLower(part[at:]); {
		case len(rest) == 1, rest == "st", rest == "nd", rest == "rd", rest == "th":
			return 0
		}
	}
	return at
}
