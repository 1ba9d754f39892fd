package redact

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// finding is a secret in a text.
type finding struct {
	from, to int
	rule     *rule
	secret   string // if it is not just what stands there
}

// engine looks for the secrets of some rules.
type engine struct {
	rules []*rule
	words *words
	owner []int    // of each word: its rule
	exact []string // of each word: how it is written, if that matters
}

// Engines are made when they are used first; their rules are shared, and each compiles its pattern when a text has one of its words.
var (
	certain = sync.OnceValue(func() *engine { return newEngine(false) })
	all     = sync.OnceValue(func() *engine { return newEngine(true) })
	known   = sync.OnceValue(func() map[string]bool {
		ids := map[string]bool{}
		for _, r := range all().rules {
			ids[r.id] = true
		}
		return ids
	})
)

func engineOf(o Options) *engine {
	if o.Entropy {
		return all()
	}
	return certain()
}

func newEngine(doubtful bool) *engine {
	e := &engine{}
	var list []string
	for _, table := range [][]rule{ourRules, gitleaksRules} {
		for i := range table {
			r := &table[i]
			if !r.certain && !doubtful {
				continue
			}
			for _, word := range r.words {
				list, e.exact, e.owner = append(list, word), append(e.exact, word), append(e.owner, len(e.rules))
			}
			for _, word := range r.folded {
				list, e.exact, e.owner = append(list, word), append(e.exact, ""), append(e.owner, len(e.rules))
			}
			e.rules = append(e.rules, r)
		}
	}
	for i, word := range list {
		list[i] = strings.ToLower(word)
	}
	e.words = newWords(list)
	return e
}

// What stands around a keyword that a rule's pattern is given, where the pattern has no bound, and how much at once where there are many
// keywords: regular expressions copy what they search.
const (
	before      = 128
	after       = 2 << 10
	windowBytes = 64 << 10
)

// window is what a rule's pattern is to search of a text.
type window struct {
	from, to int
	open     bool
	done     int // what is before is searched
}

// scanner scans texts, and keeps account of its work.
type scanner struct {
	*engine
	work    int // bytes given to patterns, and looked at otherwise but by the automaton
	text    string
	windows []window // by rule
	touched bool     // one is open, or was
	found   []finding
}

// scan finds every secret of a text, in no order; they may overlap.
func (s *scanner) scan(text string) []finding {
	s.text, s.found = text, nil
	if s.touched {
		clear(s.windows)
		s.touched = false
	}
	s.work += len(text)
	s.words.each(text, func(end int, found []int) bool {
		for _, w := range found {
			s.hit(end, w)
		}
		return true
	})
	for i := range s.windows {
		if !s.touched {
			break
		}
		s.search(s.rules[i], &s.windows[i])
	}
	return s.found
}

// hit takes note of a keyword that ends here.
func (s *scanner) hit(end int, word int) {
	exact, r := s.exact[word], s.rules[s.owner[word]]
	if exact != "" && s.text[end-len(exact):end] != exact {
		return
	}
	if s.windows == nil {
		s.windows = make([]window, len(s.rules))
	}
	s.touched = true
	w := &s.windows[s.owner[word]]
	if end <= w.done {
		return
	}
	if r.find != nil {
		var found []finding
		found, w.done = r.find(s.text, end)
		s.work += w.done - end
		for _, f := range found {
			f.rule = r
			s.found = append(s.found, f)
		}
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

// search searches a rule's window.
func (s *scanner) search(r *rule, w *window) {
	if !w.open {
		return
	}
	w.open = false
	s.work += w.to - w.from
	for _, m := range r.regexp().FindAllStringSubmatchIndex(s.text[w.from:w.to], -1) {
		if m[0] == 0 && w.from > 0 && w.from != w.done {
			continue // it may begin before the window
		}
		from, to := r.secret(m)
		f := finding{from: w.from + from, to: w.from + to, rule: r}
		if w.from+m[1] == w.to && w.to < len(s.text) {
			if r.longest > 0 {
				continue // a keyword of its own has its window yet
			}
			for f.to < len(s.text) && isToken(s.text[f.to]) {
				f.to++
			}
			s.work += f.to - w.to + 1
			w.done = f.to
		}
		if f.trim(s.text); f.from < f.to && r.takes(s.text[f.from:f.to], s.text[w.from+m[0]:w.from+m[1]]) {
			s.found = append(s.found, f)
		}
	}
}

// isToken says that a byte is of those that long secrets are made of.
func isToken(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("_-+/=.~", c) >= 0
}

// trim takes off what belongs to the text around: quotes, the end of a sentence, and either half of an escape of JSON.
func (f *finding) trim(text string) {
	for f.from < f.to && strings.IndexByte("\n'`\"", text[f.from]) >= 0 {
		f.from++
	}
	slashes := 0
	for f.from-slashes > 0 && text[f.from-slashes-1] == '\\' && slashes < maxPlaceholder {
		slashes++
	}
	if slashes%2 == 1 {
		f.from++
	}
	for f.from < f.to && strings.IndexByte("\n'`\".\\", text[f.to-1]) >= 0 {
		f.to--
	}
}

// widened is a finding with all around it up to spaces, quotes and backslashes.
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

// widest orders findings, and makes one of those that overlap, by the rule of the widest.
func widest(found []finding) []finding {
	slices.SortStableFunc(found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(b.to, a.to))
	})
	out := found[:0]
	size := 0 // of the widest of the last
	for _, f := range found {
		if len(out) == 0 || f.from >= out[len(out)-1].to {
			out, size = append(out, f), f.to-f.from
			continue
		}
		last := &out[len(out)-1]
		if f.to-f.from > size {
			last.rule, size = f.rule, f.to-f.from
		}
		if f.to > last.to {
			last.to, last.secret = f.to, ""
		}
	}
	return out
}
