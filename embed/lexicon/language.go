package lexicon

import (
	_ "embed" // for the function words
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
var languages = [...]string{"en", "de", "fr", "es", "it", "pt", "nl", "sv", "da", "no", "fi", "hu", "ro", "tr", "pl", "cs"}

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

// has reports whether the set has a language.
func (s Languages) has(l Language) bool { return s&(1<<l) != 0 }

// each calls found with each language of the set, English first.
func (s Languages) each(found func(Language)) {
	for s != 0 {
		l := bits.TrailingZeros32(uint32(s))
		found(Language(l)) //nolint:gosec // below 32
		s &^= 1 << l
	}
}

//go:embed functionwords.txt
var functionWordsFile string

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

// Letters that few languages have.
var letters = func() map[rune]Languages {
	all := map[rune]Languages{}
	for code, own := range map[string]string{"de": "ßäöü", "fr": "œçèêëîïûùàâé", "es": "ñáíóúé", "it": "èàùòì",
		"pt": "ãõçâêôáíóúé", "sv": "åäö", "da": "øæå", "no": "øæå", "fi": "äö", "hu": "őűáéíóöúü", "ro": "țșţăâî",
		"tr": "ğışçöü", "pl": "łżźśćąęńó", "cs": "řěůčšžýáíéúďťň"} {
		l, _ := LanguageNamed(code)
		for _, r := range own {
			all[r] = all[r].add(l)
		}
	}
	return all
}()

// endings maps an ending of words in lower case → the languages that have it often.
var endings = func() map[string]Languages {
	all := map[string]Languages{}
	for code, own := range map[string]string{
		"de": "ung ungen heit keit lich isch", "fr": "eux euse tions ement", "es": "ción ciones mente aron",
		"it": "zione zioni mente aggio", "pt": "ção ções mente", "nl": "ijk heid lijk", "sv": "ningen arna orna",
		"fi": "ssa ssä sta stä lla llä lle ksi nen aan ään iin tta ttä den jen ien ttu tty aista", "hu": "ban ben nak nek val vel ság ség kat ket okat eket",
		"ro": "ului ilor elor", "tr": "lar ler ları leri dan den nın nin yor ldi ldı dir dır daki deki larla lerle",
		"pl": "ego ów ach ami owy ości anie enie ania enia iono", "cs": "ého ých ách ami ovat osti"} {
		l, _ := LanguageNamed(code)
		for ending := range strings.FieldsSeq(own) {
			all[ending] = all[ending].add(l)
		}
	}
	return all
}()

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

// technical are signs of code, names and paths.
const technical = "_=<>{}\\@$#"

// Bounds of what is read to know a language.
const (
	languageWords = 120
	languageBytes = 400 // whose triples of letters are compared
	alikeWords    = 2   // least words whose triples of letters are compared
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

// LanguageOf returns the language of a text in Latin script: the one that has most of the text's frequent words, letters
// and endings, each counted once. Without such signs it is the language whose triples of letters are most alike. It is
// English if that is not clear either. sure is false for a language that is not clear. It reads the beginning of a long
// text.
func LanguageOf(text string) (l Language, sure bool) {
	s := spokenIn(compatible(text))
	return s.Language, s.sure
}

// spokenIn is LanguageOf for a text in compatibility form.
func spokenIn(text string) spoken {
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
	isTechnical := strings.ContainsAny(text, technical)
	switch {
	case best == English && counts[best] > 0, isTechnical && counts[best] < technicalCounted:
		return spoken{English, true}
	case counts[best] >= surelyCounted && float64(counts[best]) >= surelyOver*float64(counts[next]):
		return spoken{best, true}
	}
	if isTechnical {
		return spoken{English, true}
	}
	found, confidence := alike(text)
	switch {
	case found == best && counts[best] >= leastCounted && confidence >= surelyAlike:
		return spoken{best, true}
	case confidence >= surelyAlike, confidence >= leastAlike && !isASCII(text):
		return spoken{found, false}
	case counts[best] >= leastCounted && counts[best] >= leastOver*counts[next],
		counts[best] >= takenCounted && float64(counts[best]) >= takenOver*float64(counts[next]):
		return spoken{best, false}
	}
	return spoken{English, false}
}

// countSigns counts the signs of each language in the first words of a text.
func countSigns(text string) (counts [len(languages)]int) {
	read := 0
	seen := make(map[string]bool, languageWords)
	for word := range proseWords(text) {
		if read++; read > languageWords {
			break
		}
		lower := strings.ToLower(word)
		if seen[lower] {
			continue
		}
		seen[lower] = true
		count(&counts, functionWords[lower], functionWordCounts)
		if isASCII(lower) && len(lower) < endingRunes {
			continue
		}
		count(&counts, letterOf(lower), letterCounts)
		if utf8.RuneCountInString(lower) >= endingRunes {
			count(&counts, endingOf(lower), endingCounts)
		}
	}
	return counts
}

// proseWords yields the words of two letters or more that stand in a text as words do in prose: not within names of
// code, paths or numbers.
func proseWords(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for field := range strings.FieldsSeq(text) {
			for word := range strings.FieldsFuncSeq(field, func(r rune) bool { return r == '\'' || r == '’' }) {
				word = strings.Trim(word, ".,;:!?()«»„“”‘’¿¡–—-…")
				noLetter := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && r != '-' }
				if utf8.RuneCountInString(word) < 2 || strings.ContainsFunc(word, noLetter) {
					continue
				}
				if !yield(word) {
					return
				}
			}
		}
	}
}

// known are the languages for the comparison of triples of letters.
var known = map[whatlanggo.Lang]bool{whatlanggo.Eng: true, whatlanggo.Deu: true, whatlanggo.Fra: true,
	whatlanggo.Spa: true, whatlanggo.Ita: true, whatlanggo.Por: true, whatlanggo.Nld: true, whatlanggo.Swe: true,
	whatlanggo.Dan: true, whatlanggo.Nob: true, whatlanggo.Fin: true, whatlanggo.Hun: true, whatlanggo.Ron: true,
	whatlanggo.Tur: true, whatlanggo.Pol: true, whatlanggo.Ces: true}

// The least confidence of a comparison of triples of letters: for a text with letters that English lacks, and for others.
const (
	leastAlike  = 0.35
	surelyAlike = 0.6
)

// alike returns the language whose triples of letters are most like those of a text, and how sure that is, from 0 to 1.
func alike(text string) (Language, float64) {
	words := slices.Collect(proseWords(Opening(text, languageBytes)))
	if len(words) < alikeWords {
		return English, 0
	}
	found := whatlanggo.DetectWithOptions(strings.Join(words, " "), whatlanggo.Options{Whitelist: known})
	code := found.Lang.Iso6391()
	if found.Lang == whatlanggo.Nob {
		code = "no"
	}
	l, ok := LanguageNamed(code)
	if !ok || found.Script != unicode.Latin {
		return English, 0
	}
	return l, found.Confidence
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
