// Package redact replaces secrets of known shapes in texts: provider keys, private keys, passwords in URLs and headers.
//
// Each file uses those that are named before it:
//   - rules: rules_gitleaks.go rule.go rules_own.go
//   - finding secrets and replacing them: scan.go pem.go redact.go
package redact

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Options choose the rules.
type Options struct {
	Entropy bool // apply uncertain rules too, which also redact hashes and ids
}

// Redactor redacts secrets with an organization's key. It is safe for concurrent use.
type Redactor struct {
	key []byte
	o   Options
}

// New returns a redactor. Its placeholders depend on key.
func New(key []byte, o Options) *Redactor { return &Redactor{key: append([]byte(nil), key...), o: o} }

// Redact replaces each secret in a text by [REDACTED:rule:length:hash]: the rule that found the secret, its length in
// characters, and the first 8 hexadecimal digits of its HMAC-SHA-256 under the key. The same secret therefore always
// gets the same placeholder. Overlapping secrets get one placeholder, named after the rule of the widest. Redacting
// twice changes nothing more, valid JSON stays valid JSON, and the time is linear in the text's length.
func (r *Redactor) Redact(text string) string {
	return r.redact(&scanner{engine: engineOf(r.o)}, text)
}

// redact redacts a text. If the text escapes ordinary characters and that hides a secret, it redacts the text without
// these escapes instead.
func (r *Redactor) redact(s *scanner, text string) string {
	redacted := r.replace(s, text)
	if plain := decoded(text); plain != text {
		if again := r.replace(s, plain); again != decoded(redacted) {
			return again
		}
	}
	return redacted
}

// escaped matches JSON escapes that a program need not write, because they stand for visible ASCII characters. It
// matches them also in JSON within JSON.
var escaped = regexp.MustCompile(`\\+(?:u00[2-7][0-9a-fA-F]|/)`)

// decoded returns a text without needless escapes. JSON stays valid JSON.
func decoded(text string) string {
	if !strings.Contains(text, `\u00`) && !strings.Contains(text, `\/`) {
		return text
	}
	return escaped.ReplaceAllStringFunc(text, func(escape string) string {
		code := strings.TrimLeft(escape, `\`)
		if code == "/" {
			return code
		}
		c, err := strconv.ParseUint(code[1:], 16, 8)
		if err != nil || c == '"' || c == '\\' || c == 0x7f {
			return escape
		}
		return string(rune(c))
	})
}

func (r *Redactor) replace(s *scanner, text string) string {
	var b strings.Builder
	plain := 0   // start of the text after the last placeholder
	written := 0 // text before this is in b
	for pos := 0; ; {
		from, to := nextPlaceholder(text, pos)
		for _, secret := range r.secrets(s, text[plain:from], 0) {
			b.WriteString(text[written : plain+secret.from])
			b.WriteString(r.placeholder(secret))
			written = plain + secret.to
		}
		if from == len(text) {
			break
		}
		plain, pos = to, to
	}
	if written == 0 {
		return text
	}
	b.WriteString(text[written:])
	return b.String()
}

// widenAfter is the depth of secrets' recursion from which findings are widened to whole words. It keeps the scan
// linear in texts where each secret is found only after the one before it is gone.
const widenAfter = 3

// secrets returns the findings in a text, sorted and without overlaps. The text between two secrets is scanned again by
// itself, because a second redaction would do the same.
func (r *Redactor) secrets(s *scanner, text string, depth int) (all []finding) {
	found := merge(s.scan(text))
	if len(found) == 0 {
		return nil
	}
	if depth >= widenAfter {
		for i := range found {
			found[i] = found[i].widened(text)
		}
		found = merge(found)
	}
	pos := 0
	scanUntil := func(to int) {
		for _, f := range r.secrets(s, text[pos:to], depth+1) {
			f.from, f.to = f.from+pos, f.to+pos
			all = append(all, f)
		}
	}
	for _, f := range found {
		scanUntil(f.from)
		if f.secret == "" {
			f.secret = text[f.from:f.to]
		}
		all = append(all, f)
		pos = f.to
	}
	scanUntil(len(text))
	return all
}

const placeholderStart = "[REDACTED:"

func (r *Redactor) placeholder(f finding) string {
	mac := hmac.New(sha256.New, r.key)
	mac.Write([]byte(f.secret))
	length, sum := utf8.RuneCountInString(f.secret), hex.EncodeToString(mac.Sum(nil)[:4])
	return fmt.Sprintf("%s%s:%d:%s]", placeholderStart, f.rule.ID, length, sum)
}

// nextPlaceholder returns the bounds of the first placeholder at or after a position; if there is none, both are the
// text's end.
func nextPlaceholder(text string, pos int) (from, to int) {
	for {
		i := strings.Index(text[pos:], placeholderStart)
		if i < 0 {
			return len(text), len(text)
		}
		from = pos + i
		if n := placeholderBytes(text[from:]); n > 0 {
			return from, from + n
		}
		pos = from + len(placeholderStart)
	}
}

// maxPlaceholderBytes is more than the length of any placeholder.
const maxPlaceholderBytes = 128

// placeholderBytes returns the length of the placeholder at the start of a text; 0 if there is none. It checks every
// field, so that no secret can hide in a placeholder.
func placeholderBytes(text string) int {
	body, _, closed := strings.Cut(text[len(placeholderStart):min(len(text), maxPlaceholderBytes)], "]")
	fields := strings.Split(body, ":")
	if !closed || len(fields) != 3 || !ruleIDs()[fields[0]] || len(fields[1]) > 9 || len(fields[2]) != 8 {
		return 0
	}
	_, badLength := strconv.ParseUint(fields[1], 10, 32)
	_, badSum := hex.DecodeString(fields[2])
	if badLength != nil || badSum != nil {
		return 0
	}
	return len(placeholderStart) + len(body) + 1
}
