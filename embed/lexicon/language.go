package lexicon

import (
	"iter"
	"math/bits"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/abadojack/whatlanggo"
)

// Language is a language in Latin script whose words have stems of their own. Words in other scripts are stemmed by
// their script, in texts of any language.
type Language uint8

// English is also the language of texts whose language is not known.
const English Language = 0

// languages are the codes of the languages, in ISO 639-1. Their order must not change, because terms have it.
var languages = [...]string{"en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "hu", "ro", "tr", "pl",
	"cs"}

// String returns the language's code in ISO 639-1.
func (l Language) String() string { return languages[l] }

// LanguageNamed returns the language with a code in ISO 639-1. ok is false if it is none of the languages.
func LanguageNamed(code string) (l Language, ok bool) {
	for i, known := range languages {
		if known == code {
			return Language(i), true //nolint:gosec // there are few
		}
	}
	return English, false
}

// Languages is a set of languages.
type Languages uint32

// add returns the set with a language.
func (s Languages) add(l Language) Languages { return s | 1<<l }

// each calls found with each language of the set, English first.
func (s Languages) each(found func(Language)) {
	for s != 0 {
		l := bits.TrailingZeros32(uint32(s))
		found(Language(l)) //nolint:gosec // below 32
		s &^= 1 << l
	}
}

// functionWords maps a frequent word, in lower case → the languages that have it.
var functionWords = func() map[string]Languages {
	all := map[string]Languages{}
	for words := range readLines(functionWordsFile) {
		l, _ := LanguageNamed(words[0])
		for _, word := range words[1:] {
			all[word] = all[word].add(l)
		}
	}
	for word := range stopwords {
		all[word] = all[word].add(English)
	}
	return all
}()

// letters and endings map a letter that few languages have, and a frequent ending of long words → the languages.
var letters, endings = readSigns(signsFile)

func readSigns(file string) (letters map[rune]Languages, endings map[string]Languages) {
	letters, endings = map[rune]Languages{}, map[string]Languages{}
	for fields := range readLines(file) {
		l, _ := LanguageNamed(fields[0])
		for _, sign := range fields[2:] {
			if fields[1] == "endings" {
				endings[sign] = endings[sign].add(l)
				continue
			}
			r, _ := utf8.DecodeRuneInString(sign)
			letters[r] = letters[r].add(l)
		}
	}
	return letters, endings
}

// How much the signs of a language count. A sign that several languages have is shared among them.
const (
	functionWordCounts = 120
	letterCounts       = 48 // of one word
	endingCounts       = 48
	surelyCounted      = 180 // to be sure of a language by its signs
	surelyOver         = 1.5 // times the count of the next language
	technicalCounted   = 400 // to be sure of the language of a text with technical signs
	leastCounted       = 60  // to take a language by its signs
	leastOver          = 3   // times the count of the next language
	takenCounted       = 100 // to take a language by its signs, if others have some too
	takenOver          = 1.7 // times the count of the next language
)

// technical are signs of code.
const technical = "_=<>{}\\"

// Bounds of what is read to know a language.
const (
	languageWords = 120
	languageBytes = 400 // whose triples of letters are compared
	alikeWords    = 3   // least words whose triples of letters are compared; one less if English lacks their letters
	endingRunes   = 6   // least length of a word whose ending is read
)

// spoken says in which language a text is.
type spoken struct {
	Language
	sure bool // if not, its words are also stemmed as English
}

// in returns the languages whose stems the text's words have.
func (s spoken) in() Languages {
	if s.sure {
		return Languages(0).add(s.Language)
	}
	return Languages(0).add(English).add(s.Language)
}

// LanguageOf returns the language of a text in Latin script: the one that has most of the text's frequent words,
// letters and endings, each counted once. Without such signs it is the language whose triples of letters are most
// alike, and English if that is not clear either. sure is false for a language that is not clear. LanguageOf reads the
// beginning of a long text.
func LanguageOf(text string) (l Language, sure bool) {
	s := spokenIn(compatible(text))
	return s.Language, s.sure
}

// spokenIn is LanguageOf for a text in compatibility form.
func spokenIn(text string) spoken {
	isTechnical := strings.ContainsAny(text, technical)
	if isTechnical && isASCII(text) {
		return spoken{English, true}
	}
	counts := countSigns(text)
	best, next := English, English
	for l := range counts {
		switch {
		case counts[l] > counts[best]:
			best, next = Language(l), best //nolint:gosec // there are few
		case Language(l) != best && (counts[l] > counts[next] || next == best): //nolint:gosec // likewise
			next = Language(l) //nolint:gosec // likewise
		}
	}
	switch {
	case best == English && counts[best] >= surelyCounted, isTechnical && counts[best] < technicalCounted:
		return spoken{English, true}
	case counts[best] >= surelyCounted && float64(counts[best]) >= surelyOver*float64(counts[next]):
		return spoken{best, true}
	}
	if isTechnical {
		return spoken{English, true}
	}
	found := alike(text)
	switch {
	case found.Language == best && counts[best] >= leastCounted && found.sure >= surelyAlike:
		return spoken{best, true}
	case found.foreign >= surelyAlike, found.foreign >= leastAlike && !isASCII(text):
		return spoken{found.Language, false}
	case best == English:
		return spoken{English, counts[English] > 0}
	case counts[best] >= leastCounted && counts[best] >= leastOver*counts[next],
		counts[best] >= takenCounted && float64(counts[best]) >= takenOver*float64(counts[next]):
		return spoken{best, false}
	}
	return spoken{English, false}
}

// signs are the languages that a word is a sign of: as one of their frequent words, by its rarest letter, and by its
// ending.
type signs struct{ function, letter, ending Languages }

// signsOf returns the signs of a word in lower case.
func signsOf(word string) (s signs) {
	s.function = functionWords[word]
	if isASCII(word) && len(word) < endingRunes {
		return s
	}
	s.letter = letterOf(word)
	if utf8.RuneCountInString(word) >= endingRunes {
		s.ending = endingOf(word)
	}
	return s
}

// countSigns counts the signs of each language in the first words of a text. It stops once they are clearly of English.
func countSigns(text string) (counts [len(languages)]int) {
	read := 0
	var seen [256]bool // by the words' ids; two words with the same number count as one
	for word := range proseWords(text) {
		if read++; read > languageWords {
			break
		}
		t := lookup(word, English)
		number := uint32(t.ID) //nolint:gosec // not negative
		if t.name != nil {
			number = uint32(t.name.ID) //nolint:gosec // likewise
		}
		if seen[number%uint32(len(seen))] {
			continue
		}
		seen[number%uint32(len(seen))] = true
		count(&counts, t.signs.function, functionWordCounts)
		count(&counts, t.signs.letter, letterCounts)
		count(&counts, t.signs.ending, endingCounts)
		if read >= clearWords && isClear(&counts) {
			break
		}
	}
	return counts
}

// A text is clearly English if after so many words it has twice the signs of English that it has of any other language.
const (
	clearWords = 12
	clearOver  = 2
)

func isClear(counts *[len(languages)]int) bool {
	for _, n := range counts[1:] {
		if n*clearOver > counts[English] {
			return false
		}
	}
	return counts[English] > 0
}

// proseWords yields the words of two letters or more that stand in a text as words do in prose: not within names of
// code, paths or numbers.
func proseWords(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for field := range strings.FieldsSeq(text) {
			for {
				word, rest := field, ""
				if i := strings.IndexAny(field, "'’"); i >= 0 {
					_, size := utf8.DecodeRuneInString(field[i:])
					word, rest = field[:i], field[i+size:]
				}
				if word = strings.Trim(word, aroundWords); isProse(word) && !yield(word) {
					return
				}
				if rest == "" {
					break
				}
				field = rest
			}
		}
	}
}

// aroundWords are signs that stand before or after words in prose.
const aroundWords = ".,;:!?()«»„“”‘¿¡–—-…"

func isProse(word string) bool {
	if len(word) < 2 {
		return false
	}
	letters, previous := 0, rune(0)
	for _, r := range word {
		if unicode.IsUpper(r) && unicode.IsLower(previous) { // camelCase
			return false
		}
		previous = r
		switch {
		case unicode.IsLetter(r) || unicode.IsMark(r):
			letters++
		case r != '-':
			return false
		}
	}
	return letters > 1
}

// known are the languages for the comparison of triples of letters.
var known = map[whatlanggo.Lang]bool{whatlanggo.Eng: true, whatlanggo.Deu: true, whatlanggo.Fra: true,
	whatlanggo.Spa: true, whatlanggo.Ita: true, whatlanggo.Por: true, whatlanggo.Nld: true, whatlanggo.Swe: true,
	whatlanggo.Dan: true, whatlanggo.Nob: true, whatlanggo.Fin: true, whatlanggo.Hun: true, whatlanggo.Ron: true,
	whatlanggo.Tur: true, whatlanggo.Pol: true, whatlanggo.Ces: true}

// The least confidence of a comparison of triples of letters: for a text with letters that English lacks, and for other
// texts.
const (
	leastAlike  = 0.35
	surelyAlike = 0.6
)

// likeness is the language whose triples of letters are most like those of a text, and how sure it is, from 0 to 1,
// that it is this language, and that it is not English.
type likeness struct {
	Language
	sure, foreign float64
}

// alike returns the likeness of a text.
func alike(text string) likeness {
	words := slices.Collect(proseWords(Opening(text, languageBytes)))
	prose := strings.Join(words, " ")
	if n := len(words); n < alikeWords-1 || n < alikeWords && isASCII(prose) {
		return likeness{}
	}
	found := whatlanggo.DetectWithOptions(prose, whatlanggo.Options{Whitelist: known})
	code := found.Lang.Iso6391()
	if found.Lang == whatlanggo.Nob {
		code = "no"
	}
	l, ok := LanguageNamed(code)
	if !ok || found.Script != unicode.Latin || l == English {
		return likeness{}
	}
	two := map[whatlanggo.Lang]bool{whatlanggo.Eng: true, found.Lang: true}
	foreign := whatlanggo.DetectWithOptions(prose, whatlanggo.Options{Whitelist: two}).Confidence
	return likeness{l, found.Confidence, foreign}
}

// count adds a sign to the counts of the languages that have it.
func count(counts *[len(languages)]int, have Languages, sign int) {
	if have == 0 {
		return
	}
	share := sign / bits.OnesCount32(uint32(have))
	have.each(func(l Language) { counts[l] += share })
}

// letterOf returns the languages of the rarest letter of a word.
func letterOf(word string) (own Languages) {
	fewest := len(languages) + 1
	for _, r := range word {
		if set := letters[r]; set != 0 && bits.OnesCount32(uint32(set)) < fewest {
			own, fewest = set, bits.OnesCount32(uint32(set))
		}
	}
	return own
}

// endingOf returns the languages of a word's longest known ending.
func endingOf(word string) Languages {
	for from := range word {
		if len(word)-from > 10 || from == 0 {
			continue
		}
		if set := endings[word[from:]]; set != 0 {
			return set
		}
	}
	return 0
}
