// Package redact takes secrets of certain shape out of texts.
package redact

//go:generate go run -modfile=../../tools/go.mod gen.go

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Options say what counts as a secret.
type Options struct {
	Entropy bool // also what looks random: it takes hashes and ids for secrets
}

// Redactor redacts with the key of an organization. It is safe for concurrent use.
type Redactor struct {
	key []byte
	o   Options
}

// New returns a redactor whose placeholders are keyed.
func New(key []byte, o Options) *Redactor { return &Redactor{key: append([]byte(nil), key...), o: o} }

// Redact returns the text with [REDACTED:rule:length:hash] for each secret: its length in characters, and the first 8 hexadecimal digits
// of its HMAC-SHA-256 under the key, so that the same secret reads the same. Of secrets that overlap there is one, with the name of the
// widest. Redacting again changes nothing, and what was JSON stays JSON. It takes time in proportion to the text.
func (r *Redactor) Redact(text string) string {
	return r.redact(&scanner{engine: engineOf(r.o)}, text)
}

func (r *Redactor) redact(s *scanner, text string) string {
	var b strings.Builder
	plain := 0 // where the text begins that is no placeholder
	kept := 0  // what of the text is written
	for at := 0; ; {
		from, to := nextPlaceholder(text, at)
		for _, part := range r.secrets(s, text[plain:from], 0) {
			b.WriteString(text[kept : plain+part.from])
			b.WriteString(r.placeholder(part))
			kept = plain + part.to
		}
		if from == len(text) {
			break
		}
		plain, at = to, to
	}
	if kept == 0 {
		return text
	}
	b.WriteString(text[kept:])
	return b.String()
}

// widenAfter is how many times what is left of a text is looked through before what is found takes with it what it touches: secrets in
// a row, each of which is one only where the next is gone, do not take a look each.
const widenAfter = 3

// secrets finds what is to be replaced, in order and apart. Each stretch between two secrets is searched as a text of its own, as it will
// be when the text is redacted again.
func (r *Redactor) secrets(s *scanner, text string, depth int) (all []finding) {
	found := widest(s.scan(text))
	if len(found) == 0 {
		return nil
	}
	if depth >= widenAfter {
		for i := range found {
			found[i] = found[i].widened(text)
		}
		found = widest(found)
	}
	at := 0
	within := func(to int) {
		for _, f := range r.secrets(s, text[at:to], depth+1) {
			f.from, f.to = f.from+at, f.to+at
			all = append(all, f)
		}
	}
	for _, f := range found {
		within(f.from)
		if f.secret == "" {
			f.secret = text[f.from:f.to]
		}
		all = append(all, f)
		at = f.to
	}
	within(len(text))
	return all
}

const opening = "[REDACTED:"

func (r *Redactor) placeholder(f finding) string {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(f.secret))
	return fmt.Sprintf("%s%s:%d:%s]", opening, f.rule.id, utf8.RuneCountInString(f.secret), hex.EncodeToString(mac.Sum(nil)[:4]))
}

// nextPlaceholder finds the first at or after a place; both are the text's end if there is none.
func nextPlaceholder(text string, at int) (from, to int) {
	for {
		i := strings.Index(text[at:], opening)
		if i < 0 {
			return len(text), len(text)
		}
		from = at + i
		if n := placeholderSize(text[from:]); n > 0 {
			return from, from + n
		}
		at = from + len(opening)
	}
}

// maxPlaceholder is longer than any placeholder.
const maxPlaceholder = 128

// placeholderSize is how long the placeholder is that a text begins with, 0 if it does not. Nothing in one can hold a secret.
func placeholderSize(text string) int {
	body, _, ok := strings.Cut(text[len(opening):min(len(text), maxPlaceholder)], "]")
	id, rest, _ := strings.Cut(body, ":")
	length, sum, _ := strings.Cut(rest, ":")
	if !ok || !known()[id] || len(length) > 9 || len(sum) != 8 {
		return 0
	}
	if _, err := strconv.ParseUint(length, 10, 32); err != nil {
		return 0
	}
	if _, err := hex.DecodeString(sum); err != nil {
		return 0
	}
	return len(opening) + len(body) + 1
}
