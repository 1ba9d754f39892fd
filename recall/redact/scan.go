package redact

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"sync"

	ahocorasick "github.com/petar-dambovaliev/aho-corasick"
)

// finding is a secret in a text.
type finding struct {
	from, to int
	rule     *rule
	secret   string // the text that the placeholder's length and hash are made from, if not text[from:to]
}

// engine finds the keywords of some rules.
type engine struct {
	rules     []*rule
	automaton *ahocorasick.AhoCorasick
	keywords  []keyword // by the automaton's pattern
}

type keyword struct {
	rule  int
	exact string // the keyword if its case matters; otherwise empty
}

// Engines are built on first use and share their rules. A rule compiles its pattern when a text first contains one of
// its keywords.
var (
	certainEngine = sync.OnceValue(func() *engine { return newEngine(false) })
	fullEngine    = sync.OnceValue(func() *engine { return newEngine(true) })
	ruleIDs       = sync.OnceValue(func() map[string]bool {
		ids := map[string]bool{}
		for _, r := range fullEngine().rules {
			ids[r.ID] = true
		}
		return ids
	})
)

func engineOf(o Options) *engine {
	if o.Entropy {
		return fullEngine()
	}
	return certainEngine()
}

func newEngine(uncertain bool) *engine {
	e := &engine{}
	var words []string
	for _, table := range [][]rule{ownRules, gitleaks().Rules} {
		for i := range table {
			r := &table[i]
			if !r.Certain && !uncertain {
				continue
			}
			for _, word := range r.Exact {
				words, e.keywords = append(words, word), append(e.keywords, keyword{len(e.rules), word})
			}
			for _, word := range r.Folded {
				words, e.keywords = append(words, word), append(e.keywords, keyword{rule: len(e.rules)})
			}
			e.rules = append(e.rules, r)
		}
	}
	e.automaton = newAutomaton(words, true)
	return e
}

// A rule's pattern searches only a window around each keyword, because regular expressions copy the text that they
// search. Overlapping windows are joined, up to windowBytes.
const (
	windowBack  = 128     // bytes before the end of the keyword
	windowAhead = 2 << 10 // bytes behind the keyword
	windowBytes = 64 << 10
)

// window is the part of a text that a rule's pattern must still search.
type window struct {
	from, to int
	open     bool
	done     int // the rule has searched the text up to here
}

// scanner scans one text after another and counts its work.
type scanner struct {
	*engine
	work    int // bytes read by patterns and checks
	text    string
	windows []window // by rule; nil until a keyword is found
	found   []finding
}

// scan returns all secrets in a text, in no particular order; they may overlap.
func (s *scanner) scan(text string) []finding {
	s.text, s.found = text, nil
	clear(s.windows)
	s.work += len(text)
	matches := s.automaton.IterOverlapping(text)
	for m := matches.Next(); m != nil; m = matches.Next() {
		s.visit(s.keywords[m.Pattern()], m.End())
	}
	for i := range s.windows {
		s.search(s.rules[i], &s.windows[i])
	}
	return s.found
}

// visit handles a keyword that ends at a position. It searches at once, or extends the rule's window.
func (s *scanner) visit(k keyword, end int) {
	if k.exact != "" && s.text[end-len(k.exact):end] != k.exact {
		return
	}
	if s.windows == nil {
		s.windows = make([]window, len(s.rules))
	}
	r, w := s.rules[k.rule], &s.windows[k.rule]
	if end <= w.done {
		return
	}
	if r.find != nil {
		s.find(r, w, end)
		return
	}
	if r.near != nil {
		s.work += nearBytes
		if !r.near(s.text, end) {
			return
		}
	}
	ahead, back := r.reach()
	from, to := max(end-back, w.done, 0), min(end+ahead, len(s.text))
	if w.open && from <= w.to && to-w.from <= windowBytes {
		w.to = max(w.to, to)
		return
	}
	s.search(r, w)
	if end > w.done {
		w.from, w.to, w.open = max(from, w.done), to, true
	}
}

// find calls the function that a rule has instead of a pattern.
func (s *scanner) find(r *rule, w *window, end int) {
	var found []finding
	found, w.done = r.find(s.text, end)
	s.work += w.done - end
	for _, f := range found {
		f.rule = r
		s.found = append(s.found, f)
	}
}

// search closes a rule's open window and searches it.
func (s *scanner) search(r *rule, w *window) {
	if !w.open {
		return
	}
	w.open = false
	s.work += w.to - w.from
	for _, m := range r.regexp().FindAllStringSubmatchIndex(s.text[w.from:w.to], -1) {
		if m[0] == 0 && w.from > 0 && w.from != w.done {
			continue // the match may start before the window
		}
		from, to := r.secret(m)
		f := finding{from: w.from + from, to: w.from + to, rule: r}
		if w.from+m[1] == w.to && w.to < len(s.text) { // the match may end after the window
			if r.Longest > 0 {
				continue // it contains another keyword, and that keyword's window is still to come
			}
			for f.to < len(s.text) && isTokenByte(s.text[f.to]) {
				f.to++
			}
			s.work += f.to - w.to + 1
			w.done = f.to
		}
		if f.trim(s.text); f.from < f.to && r.isSecret(s.text[f.from:f.to], s.text[w.from+m[0]:w.from+m[1]]) {
			s.found = append(s.found, f)
		}
	}
}

// isTokenByte reports whether long secrets may contain a byte.
func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("_-+/=.~", c) >= 0
}

// halfEscape matches what follows the backslash in a JSON escape.
var halfEscape = regexp.MustCompile(`^(?s:u[0-9a-fA-F]{4}|.)`)

// trim removes quotes, the period of a sentence, and halves of JSON escapes from both ends of a finding.
func (f *finding) trim(text string) {
	for f.from < f.to && strings.IndexByte("\n'`\"", text[f.from]) >= 0 {
		f.from++
	}
	slashes := 0
	for f.from-slashes > 0 && text[f.from-slashes-1] == '\\' && slashes < maxPlaceholderBytes {
		slashes++
	}
	if slashes%2 == 1 {
		f.from += len(halfEscape.FindString(text[f.from:f.to]))
	}
	for f.from < f.to && strings.IndexByte("\n'`\".\\", text[f.to-1]) >= 0 {
		f.to--
	}
}

// widened extends a finding on both sides to the next space, quote, backslash or angle bracket.
func (f finding) widened(text string) finding {
	const bounds = " \t\r\n\"'\\<>"
	f.from = strings.LastIndexAny(text[:f.from], bounds) + 1
	if i := strings.IndexAny(text[f.to:], bounds); i >= 0 {
		f.to += i
	} else {
		f.to = len(text)
	}
	f.secret = ""
	f.trim(text)
	return f
}

// merge sorts findings and joins overlapping ones under the rule of the widest.
func merge(found []finding) []finding {
	slices.SortStableFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	out := found[:0]
	widest := 0 // bytes of the widest finding that was joined into the last one
	for _, f := range found {
		if len(out) == 0 || f.from >= out[len(out)-1].to {
			out, widest = append(out, f), f.to-f.from
			continue
		}
		last := &out[len(out)-1]
		if f.to-f.from > widest {
			last.rule, widest = f.rule, f.to-f.from
		}
		if f.to > last.to {
			last.to, last.secret = f.to, ""
		}
	}
	return out
}
