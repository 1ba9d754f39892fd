package tokens

import (
	_ "embed"
	"unicode/utf8"
)

// vocabulary is a hash table of entries and of their beginnings. An entry is one token in both Llama 2's and Mistral's
// first vocabulary: a run of letters, a run of punctuation, or a single character beyond ASCII. These two vocabularies
// split most texts into the most tokens. There are 22,000 entries. The low bits of a hash name a slot; if that is
// taken, the next free slot is used. A slot holds three bytes of the hash, and its last bit is set if it is an entry,
// not only a beginning. scripts/token-counts.mjs makes the table.
//
//go:embed vocabulary.bin
var vocabulary string

// maxEntryBytes is the length of the longest entry.
const maxEntryBytes = 16

// The hash of an entry is 64-bit FNV-1a over its bytes. An entry that begins a word after a space starts from another
// offset.
const (
	hashOffset       = 0xcbf29ce484222325
	hashOffsetSpaced = 0x9e3779b97f4a7c15
	hashPrime        = 1099511628211
	hashMix          = 0xff51afd7ed558ccd // from Murmur; without it the hashes of short entries are alike
	slots            = 1 << 16
)

// lookUp reports whether the text with this hash begins an entry, and whether it is an entry itself.
func lookUp(hash uint64) (begins, isEntry bool) {
	hash = (hash ^ hash>>33) * hashMix
	want := uint32(hash>>40) | 3
	for slot := uint32(hash); ; slot++ { // #nosec G115 -- the low bits are meant
		i := slot % slots * 3
		switch value := uint32(vocabulary[i]) | uint32(vocabulary[i+1])<<8 | uint32(vocabulary[i+2])<<16; value {
		case want, want ^ 1:
			return true, value == want
		case 0:
			return false, false
		}
	}
}

// Costs for Estimate, in hundredths of a token. They are fitted to the largest count of five tokenizers (Llama 2 and 3,
// Mistral's first and Nemo, Qwen 2.5) over 1,100 texts: source code and data of 40 kinds, prose in 50 languages, random
// characters. On 450 other texts Estimate is 1.00 to 1.17 times that count.
const (
	oneToken        = 100
	wordInside      = 130 // the first piece of a word that does not follow a space
	wordMore        = 118 // each further piece of a word
	letterAgain     = 50  // a letter equal to the two before it
	letterAccented  = 30  // more than a plain letter, for letters up to U+017F
	letterRare      = 80  // more than a plain letter, for letters of later Latin blocks
	marksInside     = 80  // the first piece of punctuation that does not follow a space
	digit           = 108
	spaceBeforeNum  = 80
	spaceBeforeEnd  = 70 // before a line end
	spacesPerToken  = 15 // in a run
	lineEnd         = 125
	boxLine         = 120
	boxLineAgain    = 45
	basicCyrillic   = 62
	knownCharacter  = 103
	firstOfCyrillic = 0x0400
	lastOfCyrillic  = 0x052F
)

// scripts are blocks of characters that the vocabulary knows, but that take more than one token in another vocabulary.
var scripts = []struct {
	first, last rune
	cost        int
}{
	{0x0250, 0x02FF, 150}, // phonetic letters
	{firstOfCyrillic, 0x0491, basicCyrillic},
	{0x0492, lastOfCyrillic, 275}, // Cyrillic of non-Slavic languages
	{0x0530, 0x058F, 175},         // Armenian
	{0x0B80, 0x0BFF, 133},         // Tamil
	{0x0D80, 0x0DFF, 280},         // Sinhala
	{0x0F00, 0x0FFF, 210},         // Tibetan
	{0x1000, 0x109F, 140},         // Burmese
	{0x10A0, 0x10FF, 200},         // Georgian
	{0x1780, 0x17FF, 250},         // Khmer
	{joiner, joiner, 200},         // joins emoji
	{0x2200, 0x22FF, 140},         // mathematical operators
	{0x2500, 0x257F, boxLine},
	{0xFE00, 0xFE0F, 200}, // variants of emoji
	{0xFEFF, 0xFEFF, 300}, // byte order mark
}

// isSpaced reports whether a word begins at an index: at the beginning of the text or after a space.
func isSpaced(text string, index int) bool { return index == 0 || text[index-1] == ' ' }

// The kinds of bytes.
const (
	control = iota
	letter
	mark
	number
	space
	newline
	beyondASCII
)

var kinds = func() (all [256]uint8) {
	for c := range all {
		switch {
		case c >= utf8.RuneSelf:
			all[c] = beyondASCII
		case 'a' <= c|0x20 && c|0x20 <= 'z':
			all[c] = letter
		case '0' <= c && c <= '9':
			all[c] = number
		case c == ' ':
			all[c] = space
		case c == '\n':
			all[c] = newline
		case '!' <= c && c <= '~':
			all[c] = mark
		}
	}
	return all
}()

// moreLetters returns the length of the Latin letters, with or without accents, at the start of a text.
func moreLetters(text string) int {
	for i := 0; i < len(text); {
		switch kinds[text[i]] {
		case letter:
			i++
		case beyondASCII:
			r, size := utf8.DecodeRuneInString(text[i:])
			if accent(r) == 0 {
				return i
			}
			i += size
		default:
			return i
		}
	}
	return len(text)
}

// accent returns the extra cost of a Latin letter beyond ASCII; 0 for any other character.
func accent(r rune) int {
	switch {
	case r < 0xC0 || r == '×' || r == '÷':
		return 0
	case r < 0x180:
		return letterAccented
	case r < 0x250 || 0x1E00 <= r && r < 0x1F00:
		return letterRare
	}
	return 0
}

func costOfWord(word string, spaced bool) int {
	n := oneToken
	if !spaced {
		n = wordInside
	}
	all, from := 0, 0
	for i, r := range word {
		if r >= utf8.RuneSelf {
			n += accent(r)
		} else if i >= 2 && word[i] == word[i-1] && word[i] == word[i-2] {
			n += letterAgain
			all += pieces(word[from:i], spaced && from == 0)
			from = i + 1
		}
	}
	all += pieces(word[from:], spaced && from == 0)
	return n + (all-1)*wordMore
}

func costOfMarks(marks string, spaced bool) int {
	n := oneToken
	if !spaced {
		n = marksInside
	}
	return n + (pieces(marks, spaced)-1)*oneToken
}

// pieces returns how many entries of the vocabulary a run divides into, taking the longest entry each time. An unknown
// character counts as one.
func pieces(run string, spaced bool) (n int) {
	for len(run) > 0 {
		hash := uint64(hashOffset)
		if spaced {
			hash, spaced = hashOffsetSpaced, false
		}
		_, longest := utf8.DecodeRuneInString(run)
		for i := range len(run) {
			hash = (hash ^ uint64(run[i])) * hashPrime
			begins, isEntry := lookUp(hash)
			if !begins {
				break
			}
			if isEntry {
				longest = i + 1
			}
		}
		run = run[longest:]
		n++
	}
	return n
}

// costOfSpaces returns the cost of a run of spaces before a text. A single space belongs to the word behind it.
func costOfSpaces(run int, before string) int {
	n := (run - 1 + spacesPerToken - 1) / spacesPerToken * oneToken
	if before == "" {
		return n
	}
	switch c := before[0]; kinds[c] {
	case number:
		n += spaceBeforeNum
	case newline:
		if run == 1 {
			n += spaceBeforeEnd
		}
	case beyondASCII:
		if r, _ := utf8.DecodeRuneInString(before); accent(r) == 0 && (r < firstOfCyrillic || r > lastOfCyrillic) {
			n += oneToken
		}
	}
	return n
}

// costOfRune returns the cost of a character beyond ASCII that is not a Latin letter. If no vocabulary knows it, each
// of its bytes is a token.
func costOfRune(r rune, text, before string) int {
	hash := uint64(hashOffset)
	for i := range len(text) {
		hash = (hash ^ uint64(text[i])) * hashPrime
	}
	if _, known := lookUp(hash); !known {
		return len(text) * oneToken
	}
	for _, s := range scripts {
		if r < s.first {
			break
		}
		if r > s.last {
			continue
		}
		if s.cost == boxLine && len(before) >= len(text) && before[len(before)-len(text):] == text {
			return boxLineAgain
		}
		return s.cost
	}
	return knownCharacter
}
