package redact

import (
	"math"
	"strings"
	"sync"

	ahocorasick "github.com/petar-dambovaliev/aho-corasick"
	"github.com/wasilibs/go-re2"
)

// rule describes one kind of secret: a pattern that is searched around keywords, and the exceptions.
//
// A certain rule applies by default. A rule is certain if at least three characters of the secret are fixed, hyphens
// aside (a provider's prefix, for example), if it finds a PEM block, or if the text around names the secret exactly:
// the password in a URL, the value of an Authorization header, a field of one name and size. A rule is uncertain if it
// accepts any hash, id or word that follows a provider's name or "key". tools/gitleaksrules decides this for the rules
// of gitleaks.
type rule struct {
	ID      string
	Pattern string   // the secret is its first group that took part, else the whole match
	Exact   []string // case-sensitive keywords
	Folded  []string // case-insensitive keywords, in lower case
	Entropy float64  // the secret has more bits per character than this
	Group   int      // the group that is the secret, if not the first
	Longest int      // most bytes of a match, 0 if unbounded; where set, every match contains a keyword
	ahead   int      // bytes searched after a keyword, if not windowAhead
	Certain bool
	Named   bool // the text around shows that it is a secret, even if it is the word null, true or false
	Allow   []allowlist

	near   func(text string, end int) bool                        // optional cheap check of the text after a keyword
	accept func(secret string) bool                               // optional check of the secret
	find   func(text string, end int) (found []finding, next int) // replaces the pattern

	once  sync.Once
	regex *re2.Regexp
}

// allowlist describes matches that are not secrets.
type allowlist struct {
	Patterns []string // of whole secrets: a secret that only contains such a text is still one
	Words    string   // separated by spaces, case-insensitive
	Match    bool     // search the patterns in the rule's match instead

	once      sync.Once
	regex     *re2.Regexp
	automaton *ahocorasick.AhoCorasick
}

func (r *rule) regexp() *re2.Regexp {
	r.once.Do(func() { r.regex = re2.MustCompile(r.Pattern) })
	return r.regex
}

// reach returns how many bytes after and before the end of a keyword the pattern searches.
func (r *rule) reach() (ahead, back int) {
	switch {
	case r.Longest > 0:
		return r.Longest + 1, min(r.Longest, windowBack) + 1
	case r.ahead > 0:
		return r.ahead, windowBack
	}
	return windowAhead, windowBack
}

func (r *rule) secret(m []int) (from, to int) {
	if r.Group > 0 {
		return m[2*r.Group], m[2*r.Group+1]
	}
	for i := 2; i < len(m); i += 2 {
		if m[i+1] > m[i] {
			return m[i], m[i+1]
		}
	}
	return m[0], m[1]
}

// isSecret reports whether what the pattern matched is a secret. Quotes and numbers never are: replacing them would
// break the JSON around.
func (r *rule) isSecret(secret, match string) bool {
	if strings.IndexByte(secret, '"') >= 0 || isNumber(secret) || r.Entropy > 0 && entropy(secret) <= r.Entropy ||
		r.accept != nil && !r.accept(secret) || gitleaks().Allow.allows(secret, match) && (!r.Named || !isLiteral(secret)) {
		return false
	}
	for i := range r.Allow {
		if r.Allow[i].allows(secret, match) {
			return false
		}
	}
	return true
}

func (a *allowlist) allows(secret, match string) bool {
	a.once.Do(func() {
		if len(a.Patterns) > 0 {
			pattern := "(?:" + strings.Join(a.Patterns, ")|(?:") + ")"
			if !a.Match {
				pattern = "^(?:" + pattern + ")$"
			}
			a.regex = re2.MustCompile(pattern)
		}
		if a.Words != "" {
			a.automaton = newAutomaton(strings.Fields(a.Words), false)
		}
	})
	text := secret
	if a.Match {
		text = match
	}
	return a.regex != nil && a.regex.MatchString(text) || a.automaton != nil && a.automaton.Iter(secret).Next() != nil
}

// newAutomaton returns the automaton of Aho and Corasick that finds words in any case. A deterministic one is several
// times faster and larger.
func newAutomaton(words []string, deterministic bool) *ahocorasick.AhoCorasick {
	builder := ahocorasick.NewAhoCorasickBuilder(ahocorasick.Opts{AsciiCaseInsensitive: true, DFA: deterministic})
	automaton := builder.Build(words)
	return &automaton
}

func isLiteral(text string) bool {
	switch strings.ToLower(text) {
	case "null", "true", "false":
		return true
	}
	return false
}

// isNumber reports whether a text can be a JSON number, which stands without quotes.
func isNumber(text string) bool {
	return strings.Trim(text, "0123456789+-.eE") == "" && strings.Count(strings.ToLower(text), "e") <= 1
}

// entropy returns the bits per character of a text, from the frequencies of its characters.
func entropy(text string) float64 {
	counts := map[rune]int{}
	for _, c := range text {
		counts[c]++
	}
	bits := 0.0
	for _, n := range counts {
		share := float64(n) / float64(len(text))
		bits -= share * math.Log2(share)
	}
	return bits
}
