package erase

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/loci-memory/loci/db"
)

// Limits of the texts of an erasure.
const (
	MinChars = 3 // without white space; shorter texts occur everywhere
	MaxChars = 100_000
	MaxTexts = 50
)

// The marks that replace erased texts. The short one is never longer than the text that it replaces.
const (
	mark      = "[erased]"
	shortMark = "[…]"
)

// matcher finds the occurrences of texts. An occurrence may:
//   - be in any case and any normalization of Unicode
//   - have any white space between its words, and invisible characters anywhere
//   - be escaped as in JSON (once or several times), URLs or HTML
//   - be in base64, if the text was encoded as given, composed or decomposed
type matcher struct {
	texts     []string // folded
	encoded   []string // in base64, in lower case
	letters   [][]byte // for each text of texts and encoded, the result of lettersOf
	wholeOnly bool     // an occurrence must begin and end at the bounds of a word
	window    int      // bytes that are searched at a time; 0 means windowBytes
}

// newMatcher returns a matcher for texts. ErrInvalid if there are no texts or too many, or one is too short or too
// long.
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
	}
	m.add(texts...)
	return m, nil
}

// add adds texts to find, of any length.
func (m *matcher) add(texts ...string) {
	for _, t := range texts {
		m.texts = append(m.texts, strings.TrimSpace(folded(cellsOf(t)).text))
		for _, encoded := range inBase64(t) {
			m.encoded = append(m.encoded, strings.ToLower(encoded))
		}
	}
	slices.SortFunc(m.texts, func(a, b string) int { return len(b) - len(a) })
	m.letters = nil
	for _, t := range slices.Concat(m.texts, m.encoded) {
		m.letters = append(m.letters, lettersOf(cellsOf(t)))
	}
}

// cell is a character and its place in the text.
type cell struct {
	r        rune
	from, to int32 // bytes within the window
}

func cellsOf(text string) []cell {
	cells := make([]cell, 0, len(text))
	for i, r := range text {
		size := utf8.RuneLen(r)
		if r == utf8.RuneError {
			_, size = utf8.DecodeRuneInString(text[i:])
		}
		cells = append(cells, cell{r, int32(i), int32(i + size)}) //nolint:gosec // a text to search is a window
	}
	return cells
}

// foldedText is a text in the form in which texts are compared.
type foldedText struct {
	text string
	at   []int // for each byte, the index of its cell
}

// folded puts cells into lower case, decomposes them, drops invisible characters, and reduces white space to single
// spaces.
func folded(cells []cell) foldedText {
	f := foldedText{at: make([]int, 0, len(cells))}
	var b strings.Builder
	b.Grow(len(cells))
	folds := folds{}
	space := true // true drops leading white space
	for i, c := range cells {
		before := b.Len()
		switch {
		case c.r < utf8.RuneSelf && c.r > ' ':
			b.WriteRune(unicode.ToLower(c.r))
			space = false
		case unicode.IsSpace(c.r):
			if !space {
				b.WriteByte(' ')
			}
			space = true
		case unicode.Is(unicode.Cf, c.r) || unicode.IsControl(c.r):
		default:
			b.WriteString(folds.of(c.r))
			space = false
		}
		for range b.Len() - before {
			f.at = append(f.at, i)
		}
	}
	f.text = b.String()
	return f.ordered()
}

// folds caches the folded form of characters beyond ASCII: lower case, decomposed.
type folds map[rune]string

func (f folds) of(r rune) string {
	s, ok := f[r]
	if !ok {
		s = norm.NFKD.String(cases.Fold().String(norm.NFKD.String(string(r))))
		f[r] = s
	}
	return s
}

// lettersOf returns the folded cells without signs, spaces and combining marks. If a text has an occurrence, its
// letters contain the occurrence's letters. Comparing letters first is much cheaper than a full search.
func lettersOf(cells []cell) []byte {
	letters := make([]byte, 0, len(cells))
	folds := folds{}
	for _, c := range cells {
		switch r := c.r; {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			letters = append(letters, byte(r)) //nolint:gosec // a letter or a digit of ASCII
		case r >= 'A' && r <= 'Z':
			letters = append(letters, byte(r)+'a'-'A')
		case r < utf8.RuneSelf, unicode.IsSpace(r), unicode.Is(unicode.Cf, r), unicode.IsControl(r):
		default:
			for _, r := range folds.of(r) {
				isSign := r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r)
				if !isSign && !unicode.Is(unicode.Mn, r) && combining(string(r)) == 0 {
					letters = utf8.AppendRune(letters, unicode.ToLower(r))
				}
			}
		}
	}
	return letters
}

// mayBeIn reports whether cells can contain an occurrence, by their letters.
func (m *matcher) mayBeIn(cells []cell) bool {
	letters := lettersOf(cells)
	return slices.ContainsFunc(m.letters, func(l []byte) bool { return bytes.Contains(letters, l) })
}

// ordered puts combining marks into canonical order.
func (f foldedText) ordered() foldedText {
	if norm.NFKD.IsNormalString(f.text) {
		return f
	}
	type piece struct {
		s  string
		at int
	}
	out := foldedText{at: make([]int, 0, len(f.at))}
	var b strings.Builder
	b.Grow(len(f.text))
	var marked []piece // a character, then the marks that follow it
	flush := func() {
		if len(marked) > 2 {
			slices.SortStableFunc(marked[1:], func(a, b piece) int { return int(combining(a.s)) - int(combining(b.s)) })
		}
		for _, p := range marked {
			b.WriteString(p.s)
			for range len(p.s) {
				out.at = append(out.at, p.at)
			}
		}
		marked = marked[:0]
	}
	for i, r := range f.text {
		s := f.text[i : i+utf8.RuneLen(r)]
		if combining(s) == 0 {
			flush()
		}
		marked = append(marked, piece{s, f.at[i]})
	}
	flush()
	out.text = b.String()
	return out
}

// combining returns the canonical combining class of a character, or 0 if it is not a combining mark.
func combining(s string) uint8 { return norm.NFKD.PropertiesString(s).CCC() }

// levels is how many levels of JSON escapes are decoded: JSON within JSON within stored JSON.
const levels = 3

// A long text is searched in windows, because its cells take about a hundred times its memory.
const (
	windowBytes  = 1 << 20
	contextBytes = 4 << 10  // before a window, for the escapes and words in which it begins
	spaceBytes   = 64 << 10 // most white space, line numbers and markup within an occurrence at the end of a window
	maxEscaped   = 16       // most stored bytes per byte of a text to erase
)

// span is a range of bytes of a text.
type span struct{ from, to int }

// find returns the occurrences in a text in order, without overlaps.
func (m *matcher) find(text string) []span {
	window, longest := cmp.Or(m.window, windowBytes), 0
	for _, t := range m.texts {
		longest = max(longest, len(t))
	}
	var all []span
	for from := 0; ; from += window {
		begin := runeStart(text, from-contextBytes)
		end := runeStart(text, from+window+spaceBytes+maxEscaped*longest)
		for _, s := range m.inWindow(text[begin:end]) {
			if s.from += begin; s.from >= from && (s.from < from+window || end == len(text)) {
				all = append(all, span{s.from, s.to + begin})
			}
		}
		if end == len(text) {
			return merged(all)
		}
	}
}

// runeStart returns the last position at or before pos where a character begins, or the end of the text.
func runeStart(text string, pos int) int {
	if pos >= len(text) {
		return len(text)
	}
	for pos > 0 && !utf8.RuneStart(text[pos]) {
		pos--
	}
	return max(pos, 0)
}

// merged sorts spans and merges those that overlap.
func merged(all []span) (out []span) {
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	for _, s := range all {
		if n := len(out); n > 0 && s.from < out[n-1].to {
			out[n-1].to = max(out[n-1].to, s.to)
			continue
		}
		out = append(out, s)
	}
	return out
}

// inWindow returns the occurrences in one window of a text, in any order.
func (m *matcher) inWindow(text string) (all []span) {
	cells := cellsOf(text)
	for level := 0; ; level++ {
		all = append(all, m.inCells(cells)...)
		for _, read := range []func([]cell) ([]cell, bool){unframed, untagged, unmarked, percentDecoded, entitiesDecoded} {
			if plain, ok := read(cells); ok {
				all = append(all, m.inCells(plain)...)
			}
		}
		var ok bool
		if cells, ok = unescaped(cells); !ok || level == levels {
			return all
		}
	}
}

func (m *matcher) inCells(cells []cell) (all []span) {
	if !m.mayBeIn(cells) {
		return nil
	}
	f := folded(cells)
	for n, text := range slices.Concat(m.texts, m.encoded) {
		for from := 0; ; {
			i := strings.Index(f.text[from:], text)
			if i < 0 {
				break
			}
			begin, end := from+i, from+i+len(text)
			from = begin + 1
			if m.wholeOnly && n < len(m.texts) && !f.isWord(begin, end) {
				continue
			}
			first, last := f.at[begin], f.at[end-1]
			for last+1 < len(cells) && unicode.Is(unicode.Mn, cells[last+1].r) {
				last++
			}
			all = append(all, span{int(cells[first].from), int(cells[last].to)})
			from = end
		}
	}
	return all
}

// isWord reports whether the bytes from begin to end have no letter or digit directly before or after them.
func (f foldedText) isWord(begin, end int) bool {
	before, _ := utf8.DecodeLastRuneInString(f.text[:begin])
	after, _ := utf8.DecodeRuneInString(f.text[end:])
	return !isWordRune(before) && !isWordRune(after)
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// in reports whether a text has an occurrence.
func (m *matcher) in(text string) bool { return len(m.find(text)) > 0 }

// erase replaces each occurrence in a text by a mark. It returns the new text and the number of occurrences.
func (m *matcher) erase(text string) (string, int) {
	found := m.find(text)
	if len(found) == 0 {
		return text, 0
	}
	var b strings.Builder
	end := 0
	for _, s := range found {
		b.WriteString(text[end:s.from] + markFor(text[s.from:s.to]))
		end = s.to
	}
	b.WriteString(text[end:])
	return b.String(), len(found)
}

func markFor(text string) string {
	if utf8.RuneCountInString(text) < len(mark) {
		return shortMark
	}
	return mark
}
