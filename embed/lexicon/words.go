package lexicon

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// word is a word of a text, as it is looked up. at is where it begins. It is negative for a whole of several parts,
// which is no name.
type word struct {
	text string
	at   int
}

// Limits of a whole joined by - or _. Longer ones are lists and sentences.
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
			if isDigit(text[i]) {
				eachNumber(text, i, found)
			}
			if end := plainEnd(text, i); end > 0 {
				found(word{text[i:end], i})
				i = end
			} else {
				i = eachJoined(text, i, found)
			}
		}
	}
}

// plainEnd returns where a plain word ends: one of ASCII letters, lower case after the first, that nothing joins to
// others. Most words are plain. It returns 0 for other words.
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

// eachJoined finds the words at text[start:] that single joiners connect, and returns where the last one ends.
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

// begins reports whether a word that can be joined to another may begin with a character of kind k.
func begins(k kind) bool { return k == upper || k == lower || k == digit }

// eachOf finds the words at the spans, which joiners connect, and their whole. If there are too many, it finds only the
// first maxJoined words, and returns where these end.
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
	for _, s := range all { // 1.234 may be a fraction, so its parts are found, too
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
	case '.': // as in H.264 or 18.500
		return isLetter(text[i-1]) && isDigit(text[i+1]) || groups(text, i, first)
	}
	return false
}

// groups reports whether the character at text[i:] may separate the thousands of a number.
func groups(text string, i int, first span) bool {
	return i+3 < len(text) && isDigits(text[i+1:i+4]) && (i+4 == len(text) || !isDigit(text[i+4])) &&
		first.to-first.from <= 3 && isDigits(text[first.from:first.to])
}

// grouped returns the number without separators if the spans are its groups of thousands, or "".
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

// joined returns the whole of several words without their joiners. It returns "" if there is one word, if all are
// numbers or if the whole is too long.
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

// continues reports whether the words at text[at:] continue a list of more than maxJoined words.
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

// eachPart finds the parts of a word, and the word itself if it has several parts.
func eachPart(text string, whole span, found func(word)) {
	part, last := whole.from, whole.from
	previous := separator
	for i := whole.from; i < whole.to; {
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
	eachHalf(text, span{part, whole.to}, found)
	if part == whole.from {
		eachBeginning(text[whole.from:whole.to], found)
	} else {
		found(word{text[whole.from:whole.to], whole.from})
		if letters := whole.from + firstDigit(text[whole.from:whole.to]); letters > part { // MySQL8
			found(word{text[whole.from:letters], whole.from})
		}
	}
}

// firstDigit returns where the first digit of a text is, or -1.
func firstDigit(text string) int { return strings.IndexAny(text, "0123456789") }

// eachHalf finds a part of a word. If the part is letters and a number, eachHalf finds both of them first.
func eachHalf(text string, half span, found func(word)) {
	part := text[half.from:half.to]
	if i := boundary(part); i > 0 {
		found(word{part[:i], half.from})
		found(word{part[i:], half.from + i})
	}
	found(word{part, half.from})
}

// Bounds of a part number.
const (
	maxPartNumber  = 24 // characters
	maxBeginnings  = 8
	leastBeginning = 3 // characters
	maxHex         = 8 // most characters, if it may be a hexadecimal number
)

// eachBeginning finds the beginnings of a part number: of SN74LS00N, SN74, SN74LS and SN74LS00. A part number has
// letters and digits in turns. It begins with a letter and has capitals, or has a letter that no hexadecimal number
// has.
func eachBeginning(part string, found func(word)) {
	if len(part) > maxPartNumber || len(part) <= leastBeginning || strings.HasPrefix(part, "0x") {
		return
	}
	isHex, isUpper, turns := true, isLetter(part[0]), 0
	var ends [maxBeginnings]int
	for i := range len(part) {
		c := part[i]
		if !isDigit(c) && !isLetter(c) {
			return
		}
		isHex = isHex && (isDigit(c) || c|0x20 <= 'f')
		isUpper = isUpper && c < 'a'
		if i == 0 || isDigit(c) == isDigit(part[i-1]) {
			continue
		}
		if turns == maxBeginnings {
			return
		}
		ends[turns] = i
		turns++
	}
	if turns < 2 || isHex && (!isUpper || len(part) > maxHex) {
		return
	}
	for _, end := range ends[1:turns] {
		if end >= leastBeginning {
			found(word{part[:end], -1})
		}
	}
}

// boundary returns the position of the only boundary between letters and digits in a part. It returns 0 if there is no
// such boundary or more than one, or if a number is followed by one letter or an ordinal's ending.
func boundary(part string) (split int) {
	for i := 1; i < len(part); i++ {
		if part[i] >= utf8.RuneSelf {
			return 0
		}
		if isDigit(part[i]) == isDigit(part[i-1]) {
			continue
		}
		if split > 0 {
			return 0
		}
		split = i
	}
	if split > 0 && isDigit(part[0]) {
		switch rest := strings.ToLower(part[split:]); {
		case len(rest) == 1, rest == "st", rest == "nd", rest == "rd", rest == "th":
			return 0
		}
	}
	return split
}
