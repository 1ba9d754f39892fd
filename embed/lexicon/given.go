package lexicon

import (
	"slices"
	"strings"
	"unicode"
)

// scripts are languages that are known by their script, in the order in which they are looked for.
var scripts = []struct {
	code  string
	table *unicode.RangeTable
}{{"ja", unicode.Hiragana}, {"ja", unicode.Katakana}, {"ko", unicode.Hangul}, {"zh", unicode.Han}, {"th", unicode.Thai},
	{"ru", unicode.Cyrillic}, {"el", unicode.Greek}, {"ar", unicode.Arabic}, {"he", unicode.Hebrew},
	{"hi", unicode.Devanagari}, {"ta", unicode.Tamil}}

// Codes returns the codes of the languages that a text may be given, in ISO 639-1, sorted.
func Codes() []string {
	codes := slices.Clone(languages[:])
	for _, s := range scripts {
		codes = append(codes, s.code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

// languageIn returns the code of the language of a text in Latin script that is known to be in a language, or of a text
// in another script. It returns "" for a text without letters.
func languageIn(text string, in spoken) string {
	text = Opening(text, languageBytes)
	latin, others := 0, make([]int, len(scripts))
	for _, r := range text {
		if r < 0x80 || unicode.Is(unicode.Latin, r) {
			if unicode.IsLetter(r) {
				latin++
			}
			continue
		}
		for i, s := range scripts {
			if unicode.Is(s.table, r) {
				others[i]++
				break
			}
		}
	}
	all := latin
	for _, n := range others {
		all += n
	}
	if all == 0 {
		return ""
	}
	for i, n := range others {
		// Japanese has Chinese characters, too; a word of it has more letters in Latin script.
		if few := strings.HasPrefix(scripts[i].code, "ja") && n > 0 && latin <= all/2; few || 3*n > all {
			return scripts[i].code
		}
	}
	return in.String()
}

// DocumentIn is Document for a text in a language that is given by its code, or "" for the one that is found.
func DocumentIn(text, code string) Lex {
	if code == "" {
		return Document(text)
	}
	l, _ := LanguageNamed(code) // in other languages, words in Latin script are English
	lex := document(compatible(text), spoken{l, true})
	lex.Language = code
	return lex
}

// CodeOf returns the code of a text's language, in ISO 639-1; "" if the text has no letters.
func CodeOf(text string) string {
	text = compatible(text)
	return languageIn(text, spokenIn(text))
}

// NotACode is the rule that a code of no language breaks.
var NotACode = "it must be one of " + strings.Join(Codes(), ", ") + "; leave it out to have it found"
