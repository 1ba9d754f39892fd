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
	add := func(stem string) {
		if !slices.Contains(stems, stem) {
			stems = append(stems, stem)
		}
	}
	text := bare(word)
	switch first, _ := utf8.DecodeRuneInString(text); {
	case first < utf8.RuneSelf || unicode.Is(unicode.Latin, first):
		if in == English {
			add(TermOf("", text).Text)
		} else {
			add(snowball(in, word))
			add(snowball(in, text)) // for those who write without diacritics
			if languages[in] == "tr" && utf8.RuneCountInString(text) <= shortTurkish {
				add(endTurkish(text)) // it may have no ending: makine
			}
		}
		if spelled := bare(spelledUmlauts.Replace(word)); spelled != text {
			if in == English {
				add(TermOf("", spelled).Text)
			} else {
				add(snowball(in, spelled))
			}
		}
	case unicode.Is(unicode.Cyrillic, first):
		add(bare(stemmed(russian.Stem, strings.ReplaceAll(word, "ё", "е"))))
	case unicode.Is(unicode.Greek, first):
		add(stemGreek(text))
	case unicode.Is(unicode.Arabic, first):
		add(stemArabic(text))
	case unicode.Is(unicode.Hebrew, first):
		for _, stem := range stemsHebrew(text) {
			add(stem)
		}
	case unicode.Is(unicode.Devanagari, first):
		add(stemHindi(text))
	case unicode.Is(unicode.Tamil, first):
		add(stemmed(tamil.Stem, text))
	default:
		add(text)
	}
	return stems
}

// snowballs are the stemmers of languages. Polish and Czech have light ones.
var snowballs = map[Language]func(*snowballstem.Env) bool{}

func init() { //nolint:gochecknoinits // the languages have names, not constants
	for code, stem := range map[string]func(*snowballstem.Env) bool{"de": german.Stem, "fr": french.Stem,
		"es": spanish.Stem, "it": italian.Stem, "pt": portuguese.Stem, "nl": dutch.Stem, "sv": swedish.Stem,
		"da": danish.Stem, "no": norwegian.Stem, "fi": finnish.Stem, "hu": hungarian.Stem, "ro": romanian.Stem,
		"tr": turkish.Stem} {
		l, _ := LanguageNamed(code)
		snowballs[l] = stem
	}
}

// snowball returns the stem of a word in a language other than English, without diacritics.
func snowball(in Language, word string) string {
	switch languages[in] {
	case "pl":
		return stemPolish(bare(word))
	case "cs":
		return stemCzech(bare(word))
	case "fi":
		return endFinnish(bare(stemmed(snowballs[in], word)))
	case "hu":
		return trimVowels(bare(stemmed(snowballs[in], word)))
	case "nl":
		if stem := bare(stemmed(snowballs[in], word)); len(stem) < len(bare(word)) { // bossen, but not a misspelt bosss
			return single(stem)
		}
		return bare(word)
	case "tr":
		return endTurkish(bare(stemmed(snowballs[in], word)))
	}
	return bare(stemmed(snowballs[in], word))
}

// shortTurkish is the most letters of a word of which the stemmer may take more than its endings.
const shortTurkish = 7

func stemmed(by func(*snowballstem.Env) bool, word string) string {
	env := snowballstem.NewEnv(word)
	by(env)
	return env.Current()
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
