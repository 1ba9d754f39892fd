package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// corpus makes documents: prose and Markdown with words that are distributed by Zipf's law, and the Go standard
// library's sources. The same seed makes the same documents.
type corpus struct {
	code  []string // paths of source files
	words []string // the vocabulary, most frequent word first
}

const (
	vocabulary = 40_000
	zipfS      = 1.07 // Zipf's exponent, near that for English
	zipfV      = 2.7
)

func newCorpus(code []string) *corpus {
	r := rand.New(rand.NewPCG(1, 1))
	coined, words := map[string]bool{}, make([]string, 0, vocabulary)
	for len(words) < vocabulary {
		// Frequent words are short.
		if w := coin(r, 1+int(math.Log10(float64(1+len(words))))); !coined[w] {
			coined[w] = true
			words = append(words, w)
		}
	}
	return &corpus{code: code, words: words}
}

// coin returns a word with about this number of syllables.
func coin(r *rand.Rand, syllables int) string {
	var b strings.Builder
	for range max(1, syllables+r.IntN(2)-r.IntN(2)) {
		b.WriteByte("bcdfghklmnprstvw"[r.IntN(16)])
		b.WriteByte("aeiou"[r.IntN(5)])
		if r.IntN(3) == 0 {
			b.WriteByte("lnrst"[r.IntN(5)])
		}
	}
	return b.String()
}

// goSources returns the paths of the standard library's source files, without test data, which may be no text.
func goSources(ctx context.Context) ([]string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("find Go's sources with 'go env GOROOT': %w", err)
	}
	var paths []string
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(out)), "src"),
		func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && d.Name() == "testdata":
				return fs.SkipDir
			case strings.HasSuffix(path, ".go"):
				paths = append(paths, path)
			}
			return nil
		})
	if err == nil && len(paths) == 0 {
		err = errors.New("Go's installation has no sources, which the documents are made of")
	}
	return paths, err
}

// Document is a file to upload.
type Document struct {
	Path  string
	Bytes int64
}

// needle is a text that is hidden a number of times in lines of the documents.
type needle struct {
	text  string
	times int
}

// write creates documents of total bytes in a new directory: half prose, a quarter Markdown, and a quarter source code.
// Each has 2 KB to 2 MB; small documents are more frequent.
func (c *corpus) write(dir string, total int64, seed uint64, needles ...needle) ([]Document, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	w := &writer{corpus: c, r: rand.New(rand.NewPCG(seed, 2)), needles: needles, total: total,
		hidden: make([]int, len(needles))}
	w.zipf = rand.NewZipf(w.r, zipfS, zipfV, vocabulary-1)
	w.source = w.r.IntN(len(c.code))
	var list []Document
	for w.made < total {
		size := int64(2048 * math.Pow(1000, math.Pow(w.r.Float64(), 2)))
		d, err := w.document(dir, len(list), int(min(size, max(total-w.made, 2048))))
		if err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	return list, nil
}

// prose writes a document of prose.
func (c *corpus) prose(path string, size int64, seed uint64) (Document, error) {
	w := &writer{corpus: c, r: rand.New(rand.NewPCG(seed, 3))}
	w.zipf = rand.NewZipf(w.r, zipfS, zipfV, vocabulary-1)
	text := w.prose(int(size))
	return Document{Path: path, Bytes: int64(len(text))}, os.WriteFile(path, text, 0o644)
}

// queries returns n queries, with words that are neither the most frequent nor the rarest.
func (c *corpus) queries(n int) []string {
	r := rand.New(rand.NewPCG(4, 4))
	list := make([]string, n)
	for i := range list {
		var words []string
		for range 3 + r.IntN(4) {
			words = append(words, c.words[int(30*math.Pow(600, r.Float64()))])
		}
		list[i] = strings.Join(words, " ")
	}
	return list
}

// writer makes the documents of a directory.
type writer struct {
	*corpus
	r       *rand.Rand
	zipf    *rand.Zipf
	source  int // index of the next source file
	needles []needle
	hidden  []int // how often each needle was hidden so far
	made    int64 // bytes so far, without the needles
	total   int64
}

func (w *writer) document(dir string, n, size int) (Document, error) {
	var text []byte
	var err error
	extension := []string{"txt", "md", "txt", "go"}[n%4]
	switch extension {
	case "md":
		text = w.markdown(size)
	case "go":
		text, err = w.sources(size)
	default:
		text = w.prose(size)
	}
	if err != nil {
		return Document{}, err
	}
	w.made += int64(len(text))
	text = w.hide(text)
	d := Document{Path: filepath.Join(dir, fmt.Sprintf("%06d.%s", n, extension)), Bytes: int64(len(text))}
	return d, os.WriteFile(d.Path, text, 0o644)
}

// hide puts needles between lines of a text, as many as are due by now.
func (w *writer) hide(text []byte) []byte {
	for i, n := range w.needles {
		share := float64(w.made) / float64(w.total)
		for w.hidden[i] < int(min(share, 1)*float64(n.times)) {
			w.hidden[i]++
			position := w.r.IntN(len(text))
			position += bytes.IndexByte(append(text[position:len(text):len(text)], '\n'), '\n')
			line := "\n" + w.word() + " " + w.word() + " " + n.text + " " + w.word()
			text = append(text[:position:position], append([]byte(line), text[position:]...)...)
		}
	}
	return text
}

func (w *writer) word() string { return w.words[w.zipf.Uint64()] }

// sentence appends a sentence.
func (w *writer) sentence(b []byte) []byte {
	start := len(b)
	for i := range 4 + w.r.IntN(18) {
		switch {
		case i == 0:
		case w.r.IntN(12) == 0:
			b = append(b, ", "...)
		default:
			b = append(b, ' ')
		}
		b = append(b, w.word()...)
	}
	b[start] -= 'a' - 'A'
	return append(b, '.')
}

// paragraph appends a paragraph with one or two sentences on a line.
func (w *writer) paragraph(b []byte) []byte {
	for i := range 3 + w.r.IntN(6) {
		if i > 0 {
			b = append(b, " \n"[w.r.IntN(2)])
		}
		b = w.sentence(b)
	}
	return append(b, "\n\n"...)
}

func (w *writer) prose(size int) []byte {
	b := make([]byte, 0, size+4096)
	for len(b) < size {
		b = w.paragraph(b)
	}
	return b
}

func (w *writer) markdown(size int) []byte {
	b := make([]byte, 0, size+4096)
	b = fmt.Appendf(b, "# %s %s\n\n", w.word(), w.word())
	for len(b) < size {
		switch w.r.IntN(8) {
		case 0, 1:
			b = fmt.Appendf(b, "%s %s %s\n\n", strings.Repeat("#", 2+w.r.IntN(2)), w.word(), w.word())
		case 2:
			for range 3 + w.r.IntN(6) {
				b = append(w.sentence(append(b, "- "...)), '\n')
			}
			b = append(b, '\n')
		case 3:
			b = fmt.Appendf(b, "| %s | %s |\n| --- | --- |\n", w.word(), w.word())
			for range 3 + w.r.IntN(6) {
				b = fmt.Appendf(b, "| %s | %d |\n", w.word(), w.r.IntN(10_000))
			}
			b = append(b, '\n')
		case 4:
			b = fmt.Appendf(b, "```go\nfunc %s(%s int) error {\n\treturn %s(%[2]s)\n}\n```\n\n", w.word(), w.word(), w.word())
		default:
			b = w.paragraph(b)
		}
	}
	return b
}

// sources returns about size bytes from the next source files.
func (w *writer) sources(size int) ([]byte, error) {
	var b []byte
	for len(b) < size {
		text, err := os.ReadFile(w.code[w.source%len(w.code)])
		if err != nil {
			return nil, err
		}
		w.source++
		b = append(append(b, text...), '\n')
	}
	return b[:bytes.LastIndexByte(b[:min(len(b), max(size, 64))], '\n')+1], nil
}
