package redact

import (
	"math"
	"strings"
	"sync"

	"github.com/wasilibs/go-re2"
)

// rule is a kind of secret: a pattern that is tried around its keywords, and what it takes for no secret after all.
//
// A rule is certain, and applies by default, if the secret itself has a shape that other texts do not: at least three characters of it
// are fixed, such as a provider's prefix, hyphens aside (ids have those); or it is a block of PEM; or what stands around it says that it
// is one, and nothing else stands there: the password in a URL, the value of an Authorization header, a field of exactly one name and
// size. A rule is not if it takes any hash, id or word of some length for a secret that stands beside a provider's name, or beside "key".
// gen.go decides so for each rule of gitleaks, names the exceptions, and says why.
type rule struct {
	id      string
	pattern string   // the secret is its first group that took part, or all
	words   []string // keywords as they are written
	folded  []string // keywords in any case, in lower case here
	entropy float64  // more than so many bits a character
	group   int      // the group that is the secret, if it is not the first
	longest int      // bytes of a match at most, if there is a bound; every match has a keyword then
	ahead   int      // bytes that are searched after a keyword, if not the usual
	certain bool
	allow   []allowed

	near   func(text string, end int) bool                        // whether there can be a match, by what follows a keyword
	accept func(secret string) bool                               // whether it is a secret by more than the pattern
	find   func(text string, end int) (found []finding, next int) // instead of the pattern

	once  sync.Once
	regex *re2.Regexp
}

// allowed is what looks like a secret and is none.
type allowed struct {
	patterns []string
	words    string // parted by spaces, in any case
	match    bool   // the patterns are for all that the rule's pattern fits, not only for the secret

	once    sync.Once
	regex   *re2.Regexp
	stopped *words
}

// regexp compiles the pattern when it is used first.
func (r *rule) regexp() *re2.Regexp {
	r.once.Do(func() { r.regex = re2.MustCompile(r.pattern) })
	return r.regex
}

// reach is how far from the end of a keyword the pattern is to search.
func (r *rule) reach() (ahead, back int) {
	switch {
	case r.longest > 0:
		return r.longest + 1, min(r.longest, before) + 1
	case r.ahead > 0:
		return r.ahead, before
	}
	return after, before
}

// secret is where the secret is in a match.
func (r *rule) secret(m []int) (from, to int) {
	if r.group > 0 {
		return m[2*r.group], m[2*r.group+1]
	}
	for i := 2; i < len(m); i += 2 {
		if m[i+1] > m[i] {
			return m[i], m[i+1]
		}
	}
	return m[0], m[1]
}

// takes tells whether what the pattern found is a secret.
func (r *rule) takes(secret, match string) bool {
	if strings.IndexByte(secret, '"') >= 0 || isNumber(secret) { // text around would not be JSON any more
		return false
	}
	if r.entropy > 0 && entropy(secret) <= r.entropy || r.accept != nil && !r.accept(secret) || allowedAnywhere.allows(secret, match) {
		return false
	}
	for i := range r.allow {
		if r.allow[i].allows(secret, match) {
			return false
		}
	}
	return true
}

func (a *allowed) allows(secret, match string) bool {
	a.once.Do(func() {
		if len(a.patterns) > 0 {
			a.regex = re2.MustCompile("(?:" + strings.Join(a.patterns, ")|(?:") + ")")
		}
		if a.words != "" {
			a.stopped = newWords(strings.Fields(a.words))
		}
	})
	in := secret
	if a.match {
		in = match
	}
	return a.regex != nil && a.regex.MatchString(in) || a.stopped != nil && a.stopped.in(secret)
}

// isNumber tells whether a text can be a number of JSON, which stands there without quotes.
func isNumber(text string) bool {
	return strings.Trim(text, "0123456789+-.eE") == "" && strings.Count(strings.ToLower(text), "e") <= 1
}

// entropy is how many bits a character of a text has, by how often each is in it.
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
