package files

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// required is what a line must hold for a pattern to match it: a text, and all, and one of any, as they are given. It may ask for less
// than the pattern, never for more.
type required struct {
	text string // folded, of at least gramMin bytes
	all  []*required
	any  []*required
}

// requiredBy tells what a pattern requires; nil if nothing is certain. Where no text is, one of several may be.
func requiredBy(re *syntax.Regexp) *required {
	r := pieces(re)
	if need := r.required(1); need != nil {
		return need
	}
	return r.required(writtenOut)
}

// piece is a part of a pattern: text that matches itself, folded, one of a few; or, where it is not text, something of which need is
// certain.
type piece struct {
	texts []string
	need  *required
}

// run is the parts of a pattern in their order.
type run []piece

var gap = piece{}

// writtenOut is how many texts stand for parts that are one of a few each, as [Qq]uu[xy]\d.
const writtenOut = 128

// required is what all the parts together require. Texts that stand side by side are one, or one of at most so many.
func (r run) required(most int) *required {
	var all []*required
	texts := []string{""}
	flush := func() {
		if need := oneOf(texts); need != nil {
			all = append(all, need)
		}
		texts = []string{""}
	}
	for _, p := range r {
		if len(texts)*len(p.texts) > most || p.texts == nil {
			flush()
		}
		if 0 < len(p.texts) && len(p.texts) <= most {
			texts = combined(texts, p.texts)
		} else if p.need != nil {
			all = append(all, p.need)
		}
	}
	flush()
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return &required{all: all}
}

// combined are all texts of a beginning and an end.
func combined(beginnings, ends []string) []string {
	all := make([]string, 0, len(beginnings)*len(ends))
	for _, b := range beginnings {
		for _, e := range ends {
			all = append(all, b+e)
		}
	}
	return all
}

// oneOf requires one of some texts; nil if one of them is too short to be in the index.
func oneOf(texts []string) *required {
	need := &required{}
	for _, t := range texts {
		if len(t) < gramMin {
			return nil
		}
		need.any = append(need.any, &required{text: t})
	}
	if len(need.any) == 1 {
		return need.any[0]
	}
	return need
}

// repeatedPieces is how many repeats of a part are written out.
const repeatedPieces = 4

func pieces(re *syntax.Regexp) run {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText, syntax.OpWordBoundary,
		syntax.OpNoWordBoundary:
		return nil
	case syntax.OpLiteral:
		return literalPieces(re)
	case syntax.OpCharClass:
		return classPieces(re.Rune)
	case syntax.OpCapture:
		return pieces(re.Sub[0])
	case syntax.OpPlus:
		return append(pieces(re.Sub[0]), gap)
	case syntax.OpRepeat:
		return repeatPieces(re)
	case syntax.OpConcat:
		var all run
		for _, sub := range re.Sub {
			all = append(all, pieces(sub)...)
		}
		return all
	case syntax.OpAlternate:
		return run{alternatives(re.Sub)}
	}
	return run{gap}
}

func repeatPieces(re *syntax.Regexp) run {
	if re.Min == 0 {
		return run{gap}
	}
	one, times := pieces(re.Sub[0]), min(re.Min, repeatedPieces)
	var all run
	for range times {
		all = append(all, one...)
	}
	if re.Max != times {
		all = append(all, gap)
	}
	return all
}

// alternatives require something only if each of them does.
func alternatives(subs []*syntax.Regexp) piece {
	need := &required{}
	for _, sub := range subs {
		one := requiredBy(sub)
		if one == nil {
			return gap
		}
		need.any = append(need.any, one)
	}
	return piece{need: need}
}

func literalPieces(re *syntax.Regexp) run {
	var all run
	for _, r := range re.Rune {
		if certain(r, re.Flags&syntax.FoldCase != 0) {
			all = append(all, piece{texts: []string{folded(string(r))}})
		} else {
			all = append(all, gap)
		}
	}
	return all
}

// certain tells whether it is known what stands in the index for all that a character of a pattern matches.
func certain(r rune, foldCase bool) bool {
	switch {
	case r == '\n' || !utf8.ValidRune(r):
		return false
	case r < utf8.RuneSelf || r == 'ſ' || r == '\u212A':
		return true
	}
	return !foldCase || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// classTexts is how many texts a class may stand for, case aside: the ten digits do.
const classTexts = 10

// classPieces is a class of a few characters, or a gap.
func classPieces(ranges []rune) run {
	var texts []string
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if !certain(r, false) || len(texts) > classTexts {
				return run{gap}
			}
			if one := folded(string(r)); !slices.Contains(texts, one) {
				texts = append(texts, one)
			}
		}
	}
	if len(texts) == 0 || len(texts) > classTexts {
		return run{gap}
	}
	return run{{texts: texts}}
}

// Bounds of what a search asks the index for: buckets of one text, and of all texts.
const (
	gramsOfText  = 24
	gramsOfQuery = 256
)

// texts counts the texts in what is required.
func (r *required) texts() int {
	n := 0
	if r.text != "" {
		n = 1
	}
	for _, sub := range slices.Concat(r.all, r.any) {
		n += sub.texts()
	}
	return n
}

// gramQuery is what is required, in buckets.
type gramQuery struct {
	buckets  []int32 // all of them, each once
	required *required
	of       map[string][]int // the buckets of a text, by their place in buckets
}

// queryOf asks the index for what is required; nil if it had to ask for too much, or for nothing.
func queryOf(r *required) *gramQuery {
	if r == nil || r.texts() > gramsOfQuery/4 {
		return nil
	}
	q := &gramQuery{required: r, of: map[string][]int{}}
	q.add(r, min(gramsOfQuery/r.texts(), gramsOfText), map[int32]int{})
	return q
}

func (q *gramQuery) add(r *required, most int, places map[int32]int) {
	if r.text != "" {
		for _, b := range bucketsOf(r.text, most) {
			place, known := places[b]
			if !known {
				place = len(q.buckets)
				places[b] = place
				q.buckets = append(q.buckets, b)
			}
			q.of[r.text] = append(q.of[r.text], place)
		}
	}
	for _, sub := range slices.Concat(r.all, r.any) {
		q.add(sub, most, places)
	}
}

// bucketsOf are buckets of the n-grams of a folded text, the longest n-grams first; of a long text, those of n-grams all over it.
func bucketsOf(text string, most int) []int32 {
	var list []int32
	for n := gramMax; n >= gramMin; n-- {
		places := len(text) - n + 1
		take := min(max(places, 0), most-len(list))
		for i := range take {
			at := i * places / take
			var x uint64
			for _, c := range []byte(text[at : at+n]) {
				x = x<<8 | uint64(c)
			}
			list = append(list, int32(bucket(x, n))) //nolint:gosec // below gramBuckets
		}
	}
	return list
}

// units tells which units of a block may match: rows are those of the query's buckets.
func (q *gramQuery) units(rows [][]byte) []byte { return q.eval(q.required, rows) }

func (q *gramQuery) eval(r *required, rows [][]byte) []byte {
	row := make([]byte, len(rows[0]))
	for i := range row {
		row[i] = 0xFF
	}
	for _, place := range q.of[r.text] {
		and(row, rows[place])
	}
	for _, sub := range r.all {
		and(row, q.eval(sub, rows))
	}
	if len(r.any) > 0 {
		one := make([]byte, len(row))
		for _, sub := range r.any {
			or(one, q.eval(sub, rows))
		}
		and(row, one)
	}
	return row
}
