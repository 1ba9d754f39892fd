package document

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"path"
	"sync"
)

//go:embed words/*.gz
var packedWords embed.FS

// vocabulary is a list of the words of one language.
type vocabulary struct {
	language string
	words    []byte // sorted by bytes, in lower case, each followed by LF
}

// vocabularies returns the lists of all languages.
var vocabularies = sync.OnceValue(func() (all []vocabulary) {
	entries, err := packedWords.ReadDir("words")
	for _, entry := range entries {
		list := vocabulary{language: entry.Name()[:len(entry.Name())-len(path.Ext(entry.Name()))]}
		if list.words, err = unpackedWords(entry.Name()); err != nil {
			break
		}
		all = append(all, list)
	}
	if err != nil {
		panic(err) // the lists are in the program
	}
	return all
})

func unpackedWords(name string) ([]byte, error) {
	packed, err := packedWords.ReadFile("words/" + name)
	if err != nil {
		return nil, err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(unpacked)
}

// has reports whether the list has a word, which is in lower case.
func (l vocabulary) has(word string) bool {
	lo, hi := 0, len(l.words) // each is the beginning of a line, or the end
	for lo < hi {
		middle := (lo + hi) / 2
		begin := bytes.LastIndexByte(l.words[lo:middle], '\n') + 1 + lo
		end := begin + bytes.IndexByte(l.words[begin:], '\n')
		switch c := bytes.Compare(l.words[begin:end], []byte(word)); {
		case c == 0:
			return true
		case c < 0:
			lo = end + 1
		default:
			hi = begin
		}
	}
	return false
}

// Limits of recognizing a language.
const (
	sampleWords = 2000
	fewestWords = 20 // of a sample
	leastKnown  = 4  // of ten words of a text, how many its language's list has
)

// listFor returns the word list of the language of some words, in lower case. ok is false if no list has enough of
// them.
func listFor(words []string) (best vocabulary, ok bool) {
	if len(words) < fewestWords {
		return vocabulary{}, false
	}
	step := len(words)/sampleWords + 1
	most, sampled := 0, (len(words)+step-1)/step
	for _, list := range vocabularies() {
		known := 0
		for i := 0; i < len(words); i += step {
			if list.has(words[i]) {
				known++
			}
		}
		if known > most {
			best, most = list, known
		}
	}
	return best, most*10 >= sampled*leastKnown
}
