package lexicon

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// The light stemmers take the endings of inflected forms off. They read words in lower case without diacritics.

// suffixes are endings, the longest first.
type suffixes []string

func newSuffixes(list []string) suffixes {
	slices.SortStableFunc(list, func(a, b string) int { return len(b) - len(a) })
	return list
}

// cut takes the longest ending off a word that leaves at least so many characters.
func (s suffixes) cut(word string, least int) string {
	for _, suffix := range s {
		if rest, has := strings.CutSuffix(word, suffix); has && utf8.RuneCountInString(rest) >= least {
			return rest
		}
	}
	return word
}

// replaced returns a word with its ending replaced, by the first pair of an ending and its replacement that fits.
func replaced(word string, pairs ...[2]string) string {
	for _, p := range pairs {
		if rest, has := strings.CutSuffix(word, p[0]); has && utf8.RuneCountInString(rest) >= 2 {
			return rest + p[1]
		}
	}
	return word
}

// withoutFleeting takes out the e that some forms of a word have before their last consonant: beden, bedna.
func withoutFleeting(word string) string {
	n := len(word)
	if n >= 5 && word[n-2] == 'e' && strings.IndexByte("klncrmt", word[n-1]) >= 0 &&
		strings.IndexByte("aeiouy", word[n-3]) < 0 {
		return word[:n-2] + word[n-1:]
	}
	return word
}

// suffixesOf maps the code of a language → the endings of its words.
var suffixesOf = func() map[string]suffixes {
	all := map[string]suffixes{}
	for fields := range readLines(suffixesFile) {
		all[fields[0]] = newSuffixes(fields[1:])
	}
	return all
}()

var (
	polishSuffixes, czechSuffixes = suffixesOf["pl"], suffixesOf["cs"]
	greekSuffixes, hebrewSuffixes = suffixesOf["el"], suffixesOf["he"]
	hindiSuffixes                 = suffixesOf["hi"]
)

func stemPolish(word string) string {
	word = replaced(word, [2]string{"cie", "t"}, [2]string{"dzie", "d"}, [2]string{"rze", "r"}, [2]string{"dze", "g"})
	word = withoutFleeting(polishSuffixes.cut(word, 3))
	return replaced(word, [2]string{"c", "k"})
}

func stemCzech(word string) string {
	if short := czechSuffixes.cut(word, 3); utf8.RuneCountInString(short) > 3 || !strings.HasSuffix(word, "m") {
		word = short // but nájem keeps its ending
	}
	word = withoutFleeting(word)
	return replaced(word, [2]string{"ct", "ck"}, [2]string{"c", "k"}, [2]string{"z", "h"})
}

// endFinnish makes the stems of a word's forms alike: asiakas and asiakka, kokous and kokouks, vuode and vuote.
func endFinnish(stem, _ string) string {
	long := func(s string) bool { return utf8.RuneCountInString(s) >= leastEnded }
	stem = replaced(stem, [2]string{"ks", "s"})
	if short := strings.TrimRight(stem, "sn"); long(short) {
		stem = short
	}
	return replaced(single(trimVowels(stem)), [2]string{"d", "t"})
}

// single makes one of two equal letters at the end of a stem.
func single(stem string) string {
	if n := len(stem); n > leastEnded && stem[n-1] == stem[n-2] {
		return stem[:n-1]
	}
	return stem
}

// leastEnded is the fewest characters that are left of a stem.
const leastEnded = 3

// trimVowels takes the vowels off the end of a stem.
func trimVowels(stem string) string {
	if short := strings.TrimRight(stem, "aeiouy"); utf8.RuneCountInString(short) >= leastEnded {
		return short
	}
	return stem
}

// endHungarian makes the stems of a word's forms alike: tanuló and tanul.
func endHungarian(stem, _ string) string { return trimVowels(stem) }

// endDutch makes the stems of a word's forms alike: bos and boss, of bossen. A word that ends so stays, because it is
// misspelt.
func endDutch(stem, word string) string {
	if len(stem) == len(word) {
		return stem
	}
	return single(stem)
}

// endTurkish makes the stems of a word's forms alike: fatura and fatur, garanti and garantis.
func endTurkish(stem, _ string) string {
	if n := len(stem); n > leastEnded+1 && stem[n-1] == 's' && strings.IndexByte("aeiou", stem[n-2]) >= 0 {
		stem = stem[:n-1]
	}
	return trimVowels(stem)
}

func stemGreek(word string) string { return greekSuffixes.cut(word, 3) }

// stemHindi reads a word with its vowel signs.
func stemHindi(word string) string { return hindiSuffixes.cut(word, 2) }

// Endings of Arabic words, in the order in which they are taken off, and what stands before words: and, the, in, as,
// for.
var (
	arabicEndings  = strings.Fields("ها ان ات ون ين يه ه ي")
	arabicPrefixes = strings.Fields("وال بال كال فال ال لل")
)

// leastArabic is the fewest letters behind prefixes and before endings.
const (
	leastArabic       = 3
	leastArabicEnding = 2
)

// stemArabic takes the article, prefixes and endings off a word, like Larkey's light stemmer.
func stemArabic(word string) string {
	word = arabicLetters.Replace(word)
	if rest, has := strings.CutPrefix(word, "و"); has && utf8.RuneCountInString(rest) >= leastArabic {
		word = rest
	}
	for _, prefix := range arabicPrefixes {
		if rest, has := strings.CutPrefix(word, prefix); has && utf8.RuneCountInString(rest) >= leastArabic {
			word = rest
			break
		}
	}
	for _, ending := range arabicEndings {
		if rest, has := strings.CutSuffix(word, ending); has && utf8.RuneCountInString(rest) >= leastArabicEnding {
			word = rest
		}
	}
	return word
}

// arabicLetters writes letters alike that end words in different ways.
var arabicLetters = strings.NewReplacer("ى", "ي", "ة", "ه")

// hebrewFinals maps the letters that end a word → their forms elsewhere.
var hebrewFinals = strings.NewReplacer("ם", "מ", "ן", "נ", "ץ", "צ", "ף", "פ", "ך", "כ")

// hebrewPrefixes are letters that stand for and, the, in, as, to, from and that before a word.
const hebrewPrefixes = "והבכלמש"

// leastHebrew is the fewest letters behind prefixes.
const leastHebrew = 3

// stemsHebrew returns the stems of a word: with its first letters, and without those that may be prefixes.
func stemsHebrew(word string) (stems []string) {
	word = hebrewFinals.Replace(word)
	for prefixes := 0; prefixes <= 3; prefixes++ {
		if stem := hebrewSuffixes.cut(word, 2); !slices.Contains(stems, stem) {
			stems = append(stems, stem)
		}
		first, size := utf8.DecodeRuneInString(word)
		if !strings.ContainsRune(hebrewPrefixes, first) || utf8.RuneCountInString(word) <= leastHebrew {
			break
		}
		word = word[size:]
	}
	return stems
}
