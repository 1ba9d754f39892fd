package grep

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// maxEscaped is how many characters beyond ASCII a text in a pattern may have to be looked for in its escaped form too.
const maxEscaped = 64

// withEscapes lets each text in a pattern also match the form in which JSON and source code may write it: with its
// characters beyond ASCII as \uXXXX, whose digits are in either case.
func withEscapes(re *syntax.Regexp) *syntax.Regexp {
	if re.Op == syntax.OpLiteral {
		escaped := 0
		for _, r := range re.Rune {
			if r >= utf8.RuneSelf {
				escaped++
			}
		}
		if escaped == 0 || escaped > maxEscaped {
			return re
		}
		return &syntax.Regexp{Op: syntax.OpAlternate, Flags: re.Flags, Sub: []*syntax.Regexp{re, escapedLiteral(re)}}
	}
	changed := *re
	changed.Sub = make([]*syntax.Regexp, len(re.Sub))
	for i, sub := range re.Sub {
		changed.Sub[i] = withEscapes(sub)
	}
	return &changed
}

// escapedLiteral returns a literal with its characters beyond ASCII as escapes.
func escapedLiteral(re *syntax.Regexp) *syntax.Regexp {
	all := &syntax.Regexp{Op: syntax.OpConcat, Flags: re.Flags}
	for _, r := range re.Rune {
		if r < utf8.RuneSelf {
			all.Sub = append(all.Sub, &syntax.Regexp{Op: syntax.OpLiteral, Flags: re.Flags, Rune: []rune{r}})
			continue
		}
		forms := []rune{r}
		for f := unicode.SimpleFold(r); re.Flags&syntax.FoldCase != 0 && f != r; f = unicode.SimpleFold(f) {
			forms = append(forms, f)
		}
		slices.Sort(forms)
		either := &syntax.Regexp{Op: syntax.OpAlternate, Flags: re.Flags}
		for _, form := range forms {
			either.Sub = append(either.Sub, &syntax.Regexp{Op: syntax.OpLiteral, Flags: re.Flags | syntax.FoldCase,
				Rune: []rune(escapeOf(form))})
		}
		if len(forms) == 1 {
			either = either.Sub[0]
		}
		all.Sub = append(all.Sub, either)
	}
	return all
}

// escapeOf returns the escape of a character; beyond U+FFFF that of its surrogate pair.
func escapeOf(r rune) string {
	if high, low := utf16.EncodeRune(r); high != utf8.RuneError {
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}
