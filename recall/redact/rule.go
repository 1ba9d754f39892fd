package redact

import (
	"math"
	"strings"
	"sync"

	ahocorasick "github.com/petar-dambovaliev/aho-corasick"
	"github.com/wasilibs/go-re2"
)

// rule describes one kind of secret: a pattern that is searched around keywords, and exceptions.
//
// A rule is certain if at least three characters of the secret are fixed, not counting hyphens (for example by a
// provider's prefix), if it finds a PEM block, or if the text around the secret names it exactly: the password in a
// URL, the value of an Authorization header, a field of one name and size. Certain rules apply by default. A rule is
// uncertain if it accepts any hash, id or word behind a provider's name or "key". tools/gitleaksrules classifies the
// rules of gitleaks.
type rule struct {
	ID      string
	Pattern string   // the secret is the first group that matched, or else the whole match
	Exact   []string // case-sensitive keywords
	Folded  []string // case-insensitive keywords, in lower case
	Entropy float64  // the secret must have more bits per character than this
	Group   int      // number of the group that is the secret, if not the first
	Longest int      // most bytes of a match; 0 if unbounded. If set, every match contains a keyword
	ahead   int      // bytes to search after a keyword, if not windowAhead
	Certain bool
	Named   bool // the text around it names it as a secret, so null, true or false is one, too
	Allow   []allowlist

	near   func(text string, end int) bool                        // optional cheap check of the text behind a keyword
	accept func(secret string) bool                               // optional check of the secret
	find   func(text string, end int) (found []finding, next int) // replaces the pattern

	once  sync.Once
	regex *re2.Regexp
}

// allowlist describes matches that are not secrets.
type allowlist struct {
	Patterns []string // match whole secrets; a secret that only contains such a text is still a secret
	Words    string   // separated by spaces, case-insensitive
	Match    bool     // apply the patterns to the rule's whole match instead

	once      sync.Once
	regex     *re2.Regexp
	automaton *ahocorasick.AhoCorasick
}

func (r *rule) regexp() *re2.Regexp {
	r.once.Do(func() { r.regex = re2.MustCompile(r.Pattern) })
	return r.regex
}

// reach returns how many bytes the pattern searches after and before the end of a keyword.
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

// isSecret reports whether a match of the pattern is a secret. Quotes and numbers never are, because replacing them
// would break JSON.
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

// newAutomaton returns an Aho-Corasick automaton that finds words in any case. A deterministic one is several times
// faster and several times larger.
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

// isNumber reports whether a text can be a JSON number, which needs no quotes.
func isNumber(text string) bool {
	return strings.Trim(text, "0123456789+-.eE") == "" && strings.Count(strings.ToLower(text), "e") <= 1
}

// entropy returns a text's bits per character, from the frequencies of its characters.
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
