package lexicon

import (
	"hash/crc32"
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/danish"
	"github.com/blevesearch/snowballstem/dutch"
	"github.com/blevesearch/snowballstem/finnish"
	"github.com/blevesearch/snowballstem/french"
	"github.com/blevesearch/snowballstem/german"
	"github.com/blevesearch/snowballstem/hungarian"
	"github.com/blevesearch/snowballstem/italian"
	"github.com/blevesearch/snowballstem/norwegian"
	"github.com/blevesearch/snowballstem/portuguese"
	"github.com/blevesearch/snowballstem/romanian"
	"github.com/blevesearch/snowballstem/russian"
	"github.com/blevesearch/snowballstem/spanish"
	"github.com/blevesearch/snowballstem/swedish"
	"github.com/blevesearch/snowballstem/tamil"
	"github.com/blevesearch/snowballstem/turkish"
	"github.com/kljensen/snowball/english"
)

// Term is a word as it is indexed. Stop words have an empty text.
type Term struct {
	Word  string // as written
	Text  string
	ID    int32 // in the lexicon
	name  *Term // for a stop word: its term as a name
	also  *Term // the next term of the word: with ae, oe or ue for ä, ö or ü, or another stem; nil: none
	in    Language
	signs signs // of the languages of its text; only of English terms
}

// memo caches the terms of recent words: most words of a text repeat, and stemming costs ten times a lookup. Words in
// the same slot replace each other, so the cache is bounded and needs no lock.
var (
	memo     [1 << 16]atomic.Pointer[Term]
	memoSeed = maphash.MakeSeed()
)

// lookup returns the term of a word in a text of a language.
func lookup(word string, in Language) *Term {
	word = Opening(word, maxTermRunes)
	slot := &memo[(maphash.String(memoSeed, word)+uint64(in))%uint64(len(memo))]
	if t := slot.Load(); t != nil && t.in == in && t.Word == word {
		return t
	}
	t := newTerm(strings.Clone(word), in)
	slot.Store(t)
	return t
}

func newTerm(word string, in Language) *Term {
	lower := strings.ToLower(word)
	text := bare(lower)
	if stopwords[text] {
		return &Term{Word: word, in: in, name: &Term{Word: word, Text: text, ID: idOf(text)}, signs: signsOf(lower)}
	}
	var first *Term
	for _, stem := range slices.Backward(stemsIn(in, lower)) {
		first = &Term{Word: word, Text: stem, ID: idOf(stem), also: first, in: in}
	}
	if in == English {
		first.signs = signsOf(lower)
	}
	return first
}

// stemsIn returns the different stems of a word in lower case, with its diacritics, in a text of a language. Words in
// other scripts than Latin are stemmed by their script.
func stemsIn(in Language, word string) (stems []string) {
	add := func(more ...string) {
		for _, stem := range more {
			if !slices.Contains(stems, stem) {
				stems = append(stems, stem)
			}
		}
	}
	text := bare(word)
	switch first, _ := utf8.DecodeRuneInString(text); {
	case first < utf8.RuneSelf || unicode.Is(unicode.Latin, first):
		add(stemmers[in](word)...)
		add(stemmers[in](text)...) // for those who write without diacritics
		add(stemmers[in](bare(spelledUmlauts.Replace(word)))...)
	case unicode.Is(unicode.Cyrillic, first):
		add(snowball(russian.Stem)(strings.ReplaceAll(word, "ё", "е"))...)
	case unicode.Is(unicode.Greek, first):
		add(stemGreek(text))
	case unicode.Is(unicode.Arabic, first):
		add(stemArabic(text))
	case unicode.Is(unicode.Hebrew, first):
		add(stemsHebrew(text)...)
	case unicode.Is(unicode.Devanagari, first):
		add(stemHindi(text))
	case unicode.Is(unicode.Tamil, first):
		add(snowball(tamil.Stem)(text)...)
	default:
		add(text)
	}
	return stems
}

// stemmer returns the stems of a word in lower case, without diacritics. The word may have them.
type stemmer func(word string) []string

// stemmers are the stemmers of the languages.
var stemmers = func() (all [len(languages)]stemmer) {
	for code, stems := range map[string]stemmer{"en": one(func(word string) string { return TermOf("", word).Text }),
		"de": snowball(german.Stem), "fr": snowball(french.Stem), "es": snowball(spanish.Stem),
		"it": snowball(italian.Stem), "pt": snowball(portuguese.Stem), "nl": snowball(dutch.Stem, endDutch),
		"sv": snowball(swedish.Stem), "da": snowball(danish.Stem), "no": snowball(norwegian.Stem),
		"fi": snowball(finnish.Stem, endFinnish), "hu": snowball(hungarian.Stem, endHungarian),
		"ro": snowball(romanian.Stem), "tr": stemsTurkish, "pl": one(stemPolish), "cs": one(stemCzech)} {
		l, _ := LanguageNamed(code)
		all[l] = stems
	}
	return all
}()

// one returns a stemmer that makes one stem of a word without diacritics.
func one(stem func(word string) string) stemmer {
	return func(word string) []string { return []string{stem(bare(word))} }
}

// snowball returns a stemmer of the library. ends make the stems of a word's forms alike, if the library does not.
func snowball(stem func(*snowballstem.Env) bool, ends ...func(stem, word string) string) stemmer {
	return func(word string) []string {
		env := snowballstem.NewEnv(word)
		stem(env)
		stem := bare(env.Current())
		for _, end := range ends {
			stem = end(stem, bare(word))
		}
		return []string{stem}
	}
}

// shortTurkish is the most letters of a word of which the library may take more than its endings: mak of makine.
const shortTurkish = 7

var endedTurkish = snowball(turkish.Stem, endTurkish)

// stemsTurkish returns the stem of a word, and that of a short word as if it had no ending.
func stemsTurkish(word string) []string {
	stems := endedTurkish(word)
	if text := bare(word); utf8.RuneCountInString(text) <= shortTurkish {
		stems = append(stems, endTurkish(text, text))
	}
	return stems
}

// spelledUmlauts writes ä, ö and ü as they are written without these letters.
var spelledUmlauts = strings.NewReplacer("ä", "ae", "ö", "oe", "ü", "ue")

// TermOf returns the term of a word. text is the word in lower case.
func TermOf(word, text string) *Term {
	if base, ok := irregular[text]; ok {
		text = base
	}
	text = stem(text)
	if base, ok := families[text]; ok {
		text = base
	}
	return &Term{Word: word, Text: text, ID: idOf(text)}
}

// stem returns the stem of a word. If the stem is itself a word with an ending of two or more letters, it returns the
// stem of that word: experimentation becomes experiment, and then experi. A single letter, like the s of pars, is no
// ending.
func stem(text string) string {
	stemmed := english.Stem(text, true)
	if again := english.Stem(stemmed, true); len(again)+1 < len(stemmed) {
		return again
	}
	return stemmed
}

func idOf(text string) int32 { return int32(crc32.ChecksumIEEE([]byte(text)) % Lexicon) }

// maxTermRunes is how many characters of a word are kept. So a megabyte without a space costs one short term.
const maxTermRunes = 64

// Opening returns the first chars characters of a text.
func Opening(text string, chars int) string {
	if len(text) <= chars {
		return text
	}
	n := 0
	for end := range text {
		if n == chars {
			return text[:end]
		}
		n++
	}
	return text
}
