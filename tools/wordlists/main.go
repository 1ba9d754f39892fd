// Command wordlists makes a word list of files/document/words of lists with one word on each line. It keeps words of
// letters alone, in lower case, sorted and each once, and writes them packed by gzip.
//
//	wordlists [-texts DIR] LIST.gz FILE...
//
// With -texts it also keeps the words of at least four letters that stand in at least four texts (*.md) of a directory.
package main

import (
	"bufio"
	"compress/gzip"
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

func main() {
	texts := flag.String("texts", "", "a directory of texts")
	flag.Parse()
	if flag.NArg() < 2 {
		fail("usage: wordlists [-texts DIR] LIST.gz FILE...")
	}
	words := map[string]bool{}
	for _, name := range flag.Args()[1:] {
		if err := read(name, words); err != nil {
			fail(err)
		}
	}
	if *texts != "" {
		if err := readTexts(*texts, words); err != nil {
			fail(err)
		}
	}
	if err := write(flag.Arg(0), slices.Sorted(maps.Keys(words))); err != nil {
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

// leastLetters and leastTexts say which words of texts are kept.
const leastLetters, leastTexts = 4, 4

// readTexts adds words that stand in several texts. Words next to a hyphen may be parts of others.
func readTexts(dir string, words map[string]bool) error {
	texts := map[string]int{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".md") {
			return err
		}
		raw, err := fs.ReadFile(os.DirFS(dir), path)
		seen := map[string]bool{}
		for field := range strings.FieldsSeq(string(raw)) {
			word := strings.ToLower(strings.Trim(field, `.,;:!?()„“"'«»`))
			if !strings.ContainsFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }) && !seen[word] {
				seen[word] = true
				texts[word]++
			}
		}
		return err
	})
	for word, n := range texts {
		if n >= leastTexts && utf8.RuneCountInString(word) >= leastLetters {
			words[word] = true
		}
	}
	return err
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
