package lexicon

import (
	_ "embed" // for the word lists; only this file may import it, because it has the name of our package
	"slices"
	"strings"
)

//go:embed stopwords.txt
var stopwordsFile string

//go:embed irregular.txt
var irregularFile string

//go:embed families.txt
var familiesFile string

//go:embed abbreviations.txt
var abbreviationsFile string

// These are of languages other than English, and datesFile of many.
var (
	//go:embed functionwords.txt
	functionWordsFile string
	//go:embed signs.txt
	signsFile string
	//go:embed suffixes.txt
	suffixesFile string
	//go:embed chinese.txt
	chineseFile string
	//go:embed dates.txt
	datesFile string
)

// stopwords are the words that no query and no document is ranked by.
var stopwords = readStopwords(stopwordsFile)

// IsStopword reports whether a word, in lower case, is a stop word.
func IsStopword(word string) bool { return stopwords[word] }

// irregular maps an irregular English form → its base: went → go, children → child.
var irregular = readIrregular(irregularFile)

// families maps the stem of a word → the stem of its family's base: descript → describ.
var families = readFamilies(familiesFile)

// abbreviations maps the text of a term → the terms of its short or long forms.
var abbreviations = readAbbreviations(abbreviationsFile)

func readFamilies(file string) map[string]string {
	bases := make(map[string]string)
	for words := range readLines(file) {
		base := stem(words[0])
		for _, form := range words[1:] {
			if stemmed := stem(form); stemmed != base {
				bases[stemmed] = base
			}
		}
	}
	return bases
}

func readAbbreviations(file string) map[string][]*Term {
	forms := make(map[string][]*Term)
	add := func(a, b *Term) {
		same := func(t *Term) bool { return t.Text == b.Text }
		if a.Text != b.Text && !slices.ContainsFunc(forms[a.Text], same) {
			forms[a.Text] = append(forms[a.Text], b)
		}
	}
	for words := range readLines(file) {
		short, long := TermOf(words[0], words[0]), TermOf(words[1], words[1])
		add(short, long)
		add(long, short)
	}
	return forms
}

func readStopwords(file string) map[string]bool {
	words := make(map[string]bool)
	for line := range tableLines(file) {
		words[line] = true
	}
	return words
}

func readIrregular(file string) map[string]string {
	bases := make(map[string]string)
	for words := range readLines(file) {
		for _, form := range words[1:] {
			bases[form] = words[0]
		}
	}
	return bases
}

// readLines yields the words of each line of a table.
func readLines(file string) func(yield func([]string) bool) {
	return func(yield func([]string) bool) {
		for line := range tableLines(file) {
			if !yield(strings.Fields(line)) {
				return
			}
		}
	}
}

// tableLines yields the lines of a table that are neither empty nor a comment.
func tableLines(file string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(file) {
			line = strings.TrimSpace(line)
			if line == "" || line[0] == '#' {
				continue
			}
			if !yield(line) {
				return
			}
		}
	}
}
