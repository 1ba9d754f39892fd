package lexicon

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// isName reports whether the stop word at text[from:to] is a name, as in "ask Will", "in May" or "the US". A name is in
// upper case, or begins with a capital letter and does not begin a sentence. Parts of other words and contractions are
// no names.
func isName(text string, from, to int) bool {
	word := text[from:to]
	before, _ := utf8.DecodeLastRuneInString(text[:from])
	after, _ := utf8.DecodeRuneInString(text[to:])
	switch {
	case len(word) < 2 || !unicode.IsUpper(rune(word[0])) || ContinuesWord(before) || apostrophe(before),
		ContinuesWord(after), negated(text[to:]):
		return false
	case word == strings.ToUpper(word):
		return true
	case !beginsSentence(text[:from]):
		return true
	}
	return slices.Contains(givenNames, strings.ToLower(word)) && !slices.Contains(subjects, nextWord(text[to:]))
}

// givenNames are the stop words that may be names at the beginning of a sentence. There, the capital letter says
// nothing.
var givenNames = []string{"will", "may", "don"}

// subjects follow a verb at the beginning of a question ("Will you come?"), but no name.
var subjects = []string{"i", "you", "he", "she", "it", "we", "they", "this", "that", "these", "those", "the", "a", "an",
	"my", "your", "his", "her", "our", "their", "there", "any", "anyone", "someone", "everyone", "all", "not", "be"}

// ContinuesWord reports whether a character belongs to a word.
func ContinuesWord(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

func apostrophe(r rune) bool { return r == '\'' || r == '’' }

// negated reports whether a text begins with the end of a contraction with "not", as in don't.
func negated(text string) bool {
	r, size := utf8.DecodeRuneInString(text)
	return apostrophe(r) && strings.HasPrefix(strings.ToLower(Opening(text[size:], 1)), "t")
}

// beginsSentence reports whether a sentence begins after a text.
func beginsSentence(text string) bool {
	text = strings.TrimRight(text, " \t\"'“‘([*_")
	r, _ := utf8.DecodeLastRuneInString(text)
	return text == "" || strings.ContainsRune(".!?:;…\n\r-–—•|#>。！？", r)
}

// nextWord returns the first word of a text in lower case, after any spaces, or "" if the text begins with another
// sign.
func nextWord(text string) string {
	text = strings.TrimLeft(text, " \t")
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	if end < 0 {
		end = len(text)
	}
	return strings.ToLower(text[:min(end, maxTermRunes)])
}
