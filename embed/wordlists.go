package embed

import (
	_ "embed" // of the word lists; only this file may import it, because it has our package's name
	"strings"
)

//go:embed stopwords.txt
var stopwordsFile string

//go:embed irregular.txt
var irregularFile string

// stopwords are the words that no query and no document is ranked by.
var stopwords = readStopwords(stopwordsFile)

// irregular maps an irregular English form to its base: went to go, children to child.
var irregular = readIrregular(irregularFile)

func readStopwords(file string) map[string]bool {
	words := make(map[string]bool)
	for line := range tableLines(file) {
		words[line] = true
	}
	return words
}

func readIrregular(file string) map[string]string {
	bases := make(map[string]string)
	for line := range tableLines(file) {
		words := strings.Fields(line)
		for _, form := range words[1:] {
			bases[form] = words[0]
		}
	}
	return bases
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
