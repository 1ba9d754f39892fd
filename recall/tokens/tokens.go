// Package tokens counts the tokens that texts take of a model's context window: with OpenAI's vocabularies for OpenAI's
// models, and by an estimate for all others.
//
// Each file uses those that are named before it:
//   - estimates: chars.go shortruns.go estimate.go composition.go truncate.go
//   - counts with vocabularies: count.go tokens.go
//   - what a provider counts: calibration.go
package tokens

import (
	"strings"
	"sync"

	"github.com/tiktoken-go/tokenizer"
)

// Tokens that Loci adds for each message, and for each image.
const (
	PerMessage = 4
	PerImage   = 1000
)

// vocabularies are the vocabularies of OpenAI's models, by the beginnings of the models' names. A longer beginning
// stands before a shorter one. Models of other providers have other vocabularies.
var vocabularies = []struct {
	prefix   string
	encoding tokenizer.Encoding
}{
	{"gpt-5", tokenizer.O200kBase},
	{"gpt-4.1", tokenizer.O200kBase},
	{"gpt-4.5", tokenizer.O200kBase},
	{"gpt-4o", tokenizer.O200kBase},
	{"gpt-oss", tokenizer.O200kBase},
	{"chatgpt-", tokenizer.O200kBase},
	{"o1", tokenizer.O200kBase},
	{"o3", tokenizer.O200kBase},
	{"o4", tokenizer.O200kBase},
	{"gpt-4", tokenizer.Cl100kBase},
	{"gpt-3.5", tokenizer.Cl100kBase},
	{"gpt-35", tokenizer.Cl100kBase},
}

// encodingOf returns the vocabulary of a model, named by its handle (provider/model) or its name; empty if unknown.
func encodingOf(model string) tokenizer.Encoding {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	name = strings.TrimPrefix(name, "ft:") // fine-tuned
	for _, v := range vocabularies {
		if rest, ok := strings.CutPrefix(name, v.prefix); ok &&
			(rest == "" || !isLetterOrDigit(rest[0]) || strings.HasSuffix(v.prefix, "-")) {
			return v.encoding
		}
	}
	return ""
}

func isLetterOrDigit(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' }

// A Counter counts tokens and remembers its latest counts. It is safe for concurrent use; a nil Counter counts and
// remembers nothing. Each vocabulary has some megabytes, and is read when it is first needed.
type Counter struct {
	mu       sync.Mutex
	new, old map[counted]int // when new is full it becomes old
}

// counted identifies a counted text by its hash.
type counted struct {
	encoding tokenizer.Encoding
	sum      [32]byte
}

// remembered bounds the counts that a Counter remembers, about 3 MB. Of the newest counts it keeps at least half as
// many.
const remembered = 20_000

// New returns a counter.
func New() *Counter { return &Counter{} }

// Count counts the tokens of a text for a model, named by its handle (openai/gpt-4o). For models that are not OpenAI's
// it returns Estimate. What a provider charges differs, because it adds tokens around texts.
func (c *Counter) Count(model, text string) int {
	encoding := encodingOf(model)
	if encoding == "" || text == "" {
		return Estimate(text)
	}
	return c.known(encoding, text, func() int { return count(encoding, text) })
}

// Compose returns how many tokens of each class Count counts for a text.
func (c *Counter) Compose(model, text string) (of Composition) {
	if encodingOf(model) != "" {
		of[Words] = c.Count(model, text)
		return of
	}
	return compose(text).rounded()
}
