package grep

import (
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// required is what a line must contain for a pattern to match: a text, all of several requirements, or any of several.
// It may require less than the pattern does, but never more.
type required struct {
	text string // folded, at least gramMin bytes
	all  []*required
	any  []*required
}

// requiredBy returns what a pattern requires, or nil if nothing is certain. Small character classes are expanded only
// if the pattern has no text otherwise.
func requiredBy(re *syntax.Regexp) *required {
	parts := piecesOf(re)
	if need := parts.required(1); need != nil {
		return need
	}
	return parts.required(maxExpanded)
}

// maxExpanded is how many texts adjacent small classes, such as [Qq]uu[xy]\d, may be expanded to.
const maxExpanded = 128

// piece is a part of a pattern. texts lists the few folded texts that it may match; if it may match others, texts is
// nil, and need is the known requirement, if any.
type piece struct {
	texts []string
	need  *required
}

// pieces are the parts of a pattern in order.
type pieces []piece

// unknown is a piece that may match anything.
var unknown = piece{}

// required returns what all pieces together require. It joins adjacent texts, up to limit texts.
func (r pieces) required(limit int) *required {
	var all []*required
	texts := []string{""}
	flush := func() {
		if need := oneOf(texts); need != nil {
			all = append(all, need)
		}
		texts = []string{""}
	}
	for _, p := range r {
		if len(texts)*len(p.texts) > limit || p.texts == nil {
			flush()
		}
		if 0 < len(p.texts) && len(p.texts) <= limit {
			texts = product(texts, p.texts)
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

// product returns each beginning joined with each end.
func product(beginnings, ends []string) []string {
	all := make([]string, 0, len(beginnings)*len(ends))
	for _, b := range beginnings {
		for _, e := range ends {
			all = append(all, b+e)
		}
	}
	return all
}

// oneOf returns the requirement that a line has one of some texts. It returns nil if one of them is too short for the
// index.
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

func piecesOf(re *syntax.Regexp) pieces {
	switch re.Op {
	case syntax.OpEmptyMatch, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpBeginText, syntax.OpEndText,
		syntax.OpWordBoundary, syntax.OpNoWordBoundary:
		return nil
	case syntax.OpLiteral:
		return literalPieces(re)
	case syntax.OpCharClass:
		return classPieces(re.Rune)
	case syntax.OpCapture:
		return piecesOf(re.Sub[0])
	case syntax.OpPlus:
		return append(piecesOf(re.Sub[0]), unknown)
	case syntax.OpRepeat:
		return repeatPieces(re)
	case syntax.OpConcat:
		var all pieces
		for _, sub := range re.Sub {
			all = append(all, piecesOf(sub)...)
		}
		return all
	case syntax.OpAlternate:
		return pieces{alternatives(re.Sub)}
	}
	return pieces{unknown}
}

// repeatPieces writes out the required repeats, at most four.
func repeatPieces(re *syntax.Regexp) pieces {
	if re.Min == 0 {
		return pieces{unknown}
	}
	times := min(re.Min, 4)
	all := slices.Repeat(piecesOf(re.Sub[0]), times)
	if re.Max != times {
		all = append(all, unknown)
	}
	return all
}

// alternatives returns a piece that requires something only if each alternative does.
func alternatives(subs []*syntax.Regexp) piece {
	need := &required{}
	for _, sub := range subs {
		one := requiredBy(sub)
		if one == nil {
			return unknown
		}
		need.any = append(need.any, one)
	}
	return piece{need: need}
}

func literalPieces(re *syntax.Regexp) pieces {
	var all pieces
	for _, r := range re.Rune {
		if certain(r, re.Flags&syntax.FoldCase != 0) {
			all = append(all, piece{texts: []string{folded(string(r))}})
		} else {
			all = append(all, unknown)
		}
	}
	return all
}

// certain reports whether everything that a character of a pattern matches folds to the same text.
func certain(r rune, foldCase bool) bool {
	switch {
	case r == '\n' || !utf8.ValidRune(r):
		return false
	case r < utf8.RuneSelf || r == 'ſ' || r == '\u212A':
		return true
	}
	return !foldCase || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul)
}

// maxClassTexts is how many folded characters a class may have and still be expanded. The ten digits fit.
const maxClassTexts = 10

func classPieces(ranges []rune) pieces {
	var texts []string
	for i := 0; i+1 < len(ranges); i += 2 {
		for r := ranges[i]; r <= ranges[i+1]; r++ {
			if !certain(r, false) || len(texts) > maxClassTexts {
				return pieces{unknown}
			}
			if one := folded(string(r)); !slices.Contains(texts, one) {
				texts = append(texts, one)
			}
		}
	}
	if len(texts) == 0 || len(texts) > maxClassTexts {
		return pieces{unknown}
	}
	return pieces{{texts: texts}}
}

// texts counts the texts in a requirement.
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
