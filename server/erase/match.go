package erase

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/loci-memory/loci/db"
)

// Bounds of the texts of an erasure.
const (
	MinChars = 3 // without white space: shorter ones are in every text
	MaxChars = 100_000
	MaxTexts = 50
)

// The marks that take the place of what is erased. The short one is never longer than the text that it replaces.
const (
	mark      = "[erased]"
	shortMark = "[…]"
)

// matcher finds the occurrences of texts: in any case and normalization of Unicode, with any white space between words
// and characters without a width anywhere, and as JSON escapes them, once or several times.
type matcher struct {
	texts     []string // folded
	wholeOnly bool     // an occurrence begins and ends with a word
}

// newMatcher returns ErrInvalid if a text is too short or too long, or there is none.
func newMatcher(texts []string, wholeOnly bool) (*matcher, error) {
	m := &matcher{wholeOnly: wholeOnly}
	if len(texts) == 0 || len(texts) > MaxTexts {
		return nil, db.Invalid("%d texts are given; it must be from 1 to %d", len(texts), MaxTexts)
	}
	for _, t := range texts {
		folded := folded(cellsOf(t))
		n := utf8.RuneCountInString(strings.ReplaceAll(folded.text, " ", ""))
		if n < MinChars || n > MaxChars {
			return nil, db.Invalid("a text to erase has %d characters; it must have from %d to %d, without white space", n,
				MinChars, MaxChars)
		}
		for _, part := range []string{mark, shortMark} {
			if strings.Contains(part, strings.TrimSpace(folded.text)) {
				return nil, db.Invalid("a text to erase is part of %s, by which erased texts are marked", part)
			}
		}
		m.texts = append(m.texts, strings.TrimSpace(folded.text))
	}
	slices.SortFunc(m.texts, func(a, b string) int { return len(b) - len(a) })
	return m, nil
}

// cell is a character of a text, and the bytes that it stands for.
type cell struct {
	r        rune
	from, to int
}

func cellsOf(text string) []cell {
	cells := make([]cell, 0, len(text))
	for i, r := range text {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(text[i:])
		}
		cells = append(cells, cell{r, i, i + size})
	}
	return cells
}

// foldedText is a text as texts are compared, with the cell that each of its bytes comes from.
type foldedText struct {
	text string
	at   []int // the index of the cell of each byte
}

// folded returns cells in lower case and decomposed, with one space for white space, without invisible characters.
func folded(cells []cell) foldedText {
	var f foldedText
	var b strings.Builder
	fold := cases.Fold()
	space := true // at the beginning
	add := func(s string, at int) {
		b.WriteString(s)
		for range len(s) {
			f.at = append(f.at, at)
		}
	}
	for i, c := range cells {
		switch {
		case c.r < utf8.RuneSelf && c.r > ' ':
			add(string(unicode.ToLower(c.r)), i)
			space = false
		case unicode.IsSpace(c.r):
			if !space {
				add(" ", i)
			}
			space = true
		case unicode.Is(unicode.Cf, c.r) || unicode.IsControl(c.r):
		default:
			add(norm.NFKD.String(fold.String(norm.NFKD.String(string(c.r)))), i)
			space = false
		}
	}
	f.text = b.String()
	return f.ordered()
}

// ordered puts combining marks into their canonical order.
func (f foldedText) ordered() foldedText {
	if norm.NFKD.IsNormalString(f.text) {
		return f
	}
	type piece struct {
		s  string
		at int
	}
	var all []piece
	for i, r := range f.text {
		all = append(all, piece{string(r), f.at[i]})
	}
	class := func(p piece) uint8 { return norm.NFKD.PropertiesString(p.s).CCC() }
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && class(all[j]) != 0 {
			j++
		}
		slices.SortStableFunc(all[i+1:j], func(a, b piece) int { return int(class(a)) - int(class(b)) })
		i = j
	}
	var out foldedText
	for _, p := range all {
		out.text += p.s
		for range len(p.s) {
			out.at = append(out.at, p.at)
		}
	}
	return out
}

// unescaped returns cells with the escapes of JSON read; ok is false if there are none.
func unescaped(cells []cell) (out []cell, ok bool) {
	for i := 0; i < len(cells); i++ {
		c := cells[i]
		if c.r != '\\' || i+1 == len(cells) {
			out = append(out, c)
			continue
		}
		next := cells[i+1]
		if r, is := simpleEscapes[next.r]; is {
			out, ok = append(out, cell{r, c.from, next.to}), true
			i++
			continue
		}
		r, n := unicodeEscape(cells[i:])
		if n == 0 {
			out = append(out, c)
			continue
		}
		out, ok = append(out, cell{r, c.from, cells[i+n-1].to}), true
		i += n - 1
	}
	return out, ok
}

var simpleEscapes = map[rune]rune{'"': '"', '\\': '\\', '/': '/', 'n': '\n', 'r': '\r', 't': '\t', 'b': '\b', 'f': '\f'}

// unicodeEscape reads an escape such as \u00e9, or a pair of surrogates, and returns how many cells it has; 0 if none.
func unicodeEscape(cells []cell) (r rune, n int) {
	unit := func(cells []cell) (rune, bool) {
		if len(cells) < 6 || cells[0].r != '\\' || cells[1].r != 'u' {
			return 0, false
		}
		var digits []rune
		for _, c := range cells[2:6] {
			digits = append(digits, c.r)
		}
		v, err := strconv.ParseUint(string(digits), 16, 32)
		return rune(v), err == nil //nolint:gosec // four digits
	}
	first, ok := unit(cells)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(first) {
		if second, ok := unit(cells[6:]); ok {
			if r := utf16.DecodeRune(first, second); r != unicode.ReplacementChar {
				return r, 12
			}
		}
	}
	return first, 6
}

// unframed returns cells without what a tool's result or a prompt puts between the lines of a text and into it: numbers
// of lines, and the marks of tags and line ends; ok is false if there is nothing of that.
func unframed(cells []cell) (out []cell, ok bool) {
	for i := 0; i < len(cells); i++ {
		switch c := cells[i]; {
		case c.r == '⏎', c.r == '~' && i > 0 && strings.ContainsRune("<[＜［", cells[i-1].r):
			ok = true
		case c.r == '\n':
			out = append(out, c)
			if n := lineNumber(cells[i+1:]); n > 0 {
				i, ok = i+n, true
			}
		default:
			out = append(out, c)
		}
	}
	return out, ok
}

// lineNumber returns how many cells the number has with which a line begins, such as "  12: "; 0 if it has none.
func lineNumber(cells []cell) (n int) {
	for n < len(cells) && (cells[n].r == ' ' || cells[n].r == '>') {
		n++
	}
	digits := 0
	for n+digits < len(cells) && cells[n+digits].r >= '0' && cells[n+digits].r <= '9' {
		digits++
	}
	if n += digits; digits == 0 || n >= len(cells) || !strings.ContainsRune(":\t-|", cells[n].r) {
		return 0
	}
	return n + 1
}

// levels is how often escapes in a text are read: JSON in JSON in a stored JSON.
const levels = 3

// span is a part of a text, in bytes.
type span struct{ from, to int }

// find returns the occurrences in a text, in their order, without overlaps.
func (m *matcher) find(text string) []span {
	cells := cellsOf(text)
	var all []span
	for level := 0; ; level++ {
		all = append(all, m.inCells(cells)...)
		if plain, ok := unframed(cells); ok {
			all = append(all, m.inCells(plain)...)
		}
		var ok bool
		if cells, ok = unescaped(cells); !ok || level == levels {
			break
		}
	}
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	var merged []span
	for _, s := range all {
		if n := len(merged); n > 0 && s.from < merged[n-1].to {
			merged[n-1].to = max(merged[n-1].to, s.to)
			continue
		}
		merged = append(merged, s)
	}
	return merged
}

func (m *matcher) inCells(cells []cell) (all []span) {
	f := folded(cells)
	for _, text := range m.texts {
		for from := 0; ; {
			i := strings.Index(f.text[from:], text)
			if i < 0 {
				break
			}
			begin, end := from+i, from+i+len(text)
			from = begin + 1
			if m.wholeOnly && !f.isWord(begin, end) {
				continue
			}
			first, last := f.at[begin], f.at[end-1]
			for last+1 < len(cells) && unicode.Is(unicode.Mn, cells[last+1].r) {
				last++
			}
			all = append(all, span{cells[first].from, cells[last].to})
			from = end
		}
	}
	return all
}

// isWord reports whether no letter or digit is next to a part of a text.
func (f foldedText) isWord(begin, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(f.text[:begin])
	after, _ := utf8.DecodeRuneInString(f.text[end:])
	inWord := func(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
	return !inWord(before) && !inWord(after)
}

// in reports whether a text has an occurrence.
func (m *matcher) in(text string) bool { return len(m.find(text)) > 0 }

// erase returns a text with a mark in the place of each occurrence, and how many there are.
func (m *matcher) erase(text string) (string, int) {
	found := m.find(text)
	if len(found) == 0 {
		return text, 0
	}
	var b strings.Builder
	at := 0
	for _, s := range found {
		b.WriteString(text[at:s.from] + markFor(text[s.from:s.to]))
		at = s.to
	}
	b.WriteString(text[at:])
	return b.String(), len(found)
}

func markFor(text string) string {
	if utf8.RuneCountInString(text) < len(mark) {
		return shortMark
	}
	return mark
}

// machineWords are fields of JSON whose values no text of a caller is in.
var machineWords = []string{"type", "kind", "role", "id", "status", "call_id", "tool_call_id", "object"}

// eraseJSON returns JSON with a mark in the place of each occurrence, in names and texts.
func (m *matcher) eraseJSON(raw string) (string, int) {
	if len(m.find(raw)) == 0 {
		return raw, 0
	}
	d := json.NewDecoder(bytes.NewReader([]byte(raw)))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return m.erase(raw)
	}
	n := 0
	changed := m.eraseValue(value, "", &n)
	if n == 0 {
		return raw, 0
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(changed); err != nil {
		return raw, 0
	}
	return strings.TrimSuffix(b.String(), "\n"), n
}

func (m *matcher) eraseValue(value any, name string, n *int) any {
	switch v := value.(type) {
	case string:
		if slices.Contains(machineWords, name) || strings.HasSuffix(name, "_id") {
			return v
		}
		text, k := m.erase(v)
		*n += k
		return text
	case json.Number:
		if text, k := m.erase(v.String()); k > 0 {
			*n += k
			return text
		}
	case []any:
		for i := range v {
			v[i] = m.eraseValue(v[i], name, n)
		}
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, item := range v {
			to, k := m.erase(key)
			*n += k
			object[to] = m.eraseValue(item, key, n)
		}
		return object
	}
	return value
}
