// Command wordlists makes a word list of files/document/words of lists with one word on each line. It keeps words of
// letters alone, in lower case, sorted and each once, and writes them packed by gzip.
//
//	wordlists LIST.gz FILE...
package main

import (
	"bufio"
	"compress/gzip"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"
)

func main() {
	if len(os.Args) < 3 {
		fail("usage: wordlists LIST.gz FILE...")
	}
	words := map[string]bool{}
	for _, name := range os.Args[2:] {
		if err := read(name, words); err != nil {
			fail(err)
		}
	}
	if err := write(os.Args[1], slices.Sorted(maps.Keys(words))); err != nil {
		fail(err)
	}
}

func fail(why any) {
	fmt.Fprintln(os.Stderr, why)
	os.Exit(1)
}

// read adds the words of a file.
func read(name string, words map[string]bool) error {
	file, err := os.Open(name) //nolint:gosec // the operator names it
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // read only
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		word := strings.ToLower(strings.TrimSpace(lines.Text()))
		isOther := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }
		if word != "" && !strings.ContainsFunc(word, isOther) {
			words[word] = true
		}
	}
	return lines.Err()
}

func write(name string, words []string) error {
	file, err := os.Create(name) //nolint:gosec // the operator names it
	if err != nil {
		return err
	}
	packed, err := gzip.NewWriterLevel(file, gzip.BestCompression)
	if err == nil {
		_, err = packed.Write([]byte(strings.Join(words, "\n") + "\n"))
	}
	if err == nil {
		err = packed.Close()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	return err
}
