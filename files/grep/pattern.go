package grep

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/wasilibs/go-re2"

	regex "github.com/loci-memory/loci/chunker/pattern"
	"github.com/loci-memory/loci/db"
)

// PatternChars is how many characters a search pattern may have (Letta: 1,000).
const PatternChars = 1000

// PatternOptions say how a pattern is read. By default it is a regular expression that ignores case.
type PatternOptions struct {
	CaseSensitive bool
	Literal       bool // the pattern is text, not a regular expression
}

// Pattern finds matching lines. Each line is matched separately: ^, $, \A and \z are the ends of the line, and no match
// crosses a line end. A search takes time linear in the text for every pattern. A Pattern is safe for concurrent use.
type Pattern struct {
	lines   *re2.Regexp // matches from the match to the end of the line
	match   *re2.Regexp // matches what the pattern matches
	literal string      // the whole pattern, if it is a text with exact case
	grams   *gramQuery  // a condition that every matching line meets; nil if none is known
	texts   *prefilter  // finds some texts, at least one in every matching line; nil if no such texts are known

	// exact, if not nil, checks the lines that RE2 finds, because RE2's \B also matches between the bytes of a character.
	exact *regexp.Regexp

	// broken, if not nil, also finds the words of the pattern where a hyphen broke them at the end of a line.
	broken *Pattern
}

// Compile reads a pattern. ErrInvalid, with a sentence that says what to change, if it is empty, too long, or not a
// regular expression that RE2 supports.
func Compile(pattern string, o PatternOptions) (*Pattern, error) {
	pattern = strings.Trim(pattern, "\r\n")
	if strings.TrimSpace(pattern) == "" {
		return nil, db.Invalid("Empty search pattern provided")
	}
	if n := utf8.RuneCountInString(pattern); n > PatternChars {
		return nil, db.Invalid("Pattern too complex: %d chars > %d limit", n, PatternChars)
	}
	tree, err := parsePattern(pattern, o)
	if err != nil {
		return nil, db.Invalid("Invalid regex pattern: %v%s", err, hint(err))
	}
	if n := regex.States(tree); n > regex.MaxStates {
		return nil, db.Invalid("Pattern too complex: %d states > %d limit. Use smaller repeat counts.", n, regex.MaxStates)
	}
	p, err := compile(tree)
	if broken := withHyphens(tree); err == nil && broken != nil && regex.States(broken) <= regex.MaxStates {
		p.broken, err = compile(broken)
	}
	if err != nil {
		return nil, db.Invalid("Invalid regex pattern: %v. Use a simpler pattern.", err)
	}
	return p, nil
}

func compile(tree *syntax.Regexp) (p *Pattern, err error) {
	if escaped := withEscapes(tree); regex.States(escaped) <= regex.MaxStates {
		tree = escaped
	}
	need := requiredBy(tree)
	p = &Pattern{literal: literalOf(tree), grams: newGramQuery(need), texts: newPrefilter(need)}
	expression := perLine(tree)
	if strings.Contains(expression, `\B`) {
		p.exact = regexp.MustCompile(expression)
	}
	if p.match, err = re2.Compile(expression); err == nil {
		p.lines, err = re2.Compile("(?:" + expression + `)[^\n]*`)
	}
	return p, err
}

func parsePattern(pattern string, o PatternOptions) (*syntax.Regexp, error) {
	flags := syntax.Perl
	if !o.CaseSensitive {
		flags |= syntax.FoldCase
	}
	if o.Literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	return syntax.Parse(pattern, flags)
}

// perLine rewrites a pattern for single lines so that it finds the same in a text of many lines: the ends of the text
// become the ends of a line, and nothing matches a line end. It does not use syntax.Regexp.String, which takes
// milliseconds for a large class.
func perLine(re *syntax.Regexp) string {
	switch re.Op {
	case syntax.OpEmptyMatch:
		return "(?:)"
	case syntax.OpLiteral:
		return literalPerLine(re)
	case syntax.OpCharClass:
		return classPerLine(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return `[^\n]`
	case syntax.OpBeginLine, syntax.OpBeginText:
		return "(?m:^)"
	case syntax.OpEndLine, syntax.OpEndText:
		return "(?m:$)"
	case syntax.OpWordBoundary:
		return `\b`
	case syntax.OpNoWordBoundary:
		return `\B`
	case syntax.OpCapture:
		return "(?:" + perLine(re.Sub[0]) + ")"
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest, syntax.OpRepeat:
		return "(?:" + perLine(re.Sub[0]) + ")" + repeatOf(re)
	case syntax.OpConcat:
		return joined(re.Sub, "")
	case syntax.OpAlternate:
		return "(?:" + joined(re.Sub, "|") + ")"
	}
	return matchNothing
}

// matchNothing is an expression that matches no text.
const matchNothing = `[^\x00-\x{10FFFF}]`

func joined(subs []*syntax.Regexp, separator string) string {
	parts := make([]string, len(subs))
	for i, sub := range subs {
		parts[i] = perLine(sub)
	}
	return strings.Join(parts, separator)
}

func literalPerLine(re *syntax.Regexp) string {
	text := string(re.Rune)
	switch {
	case strings.Contains(text, "\n"):
		return matchNothing
	case re.Flags&syntax.FoldCase != 0:
		return "(?i:" + regexp.QuoteMeta(text) + ")"
	}
	return regexp.QuoteMeta(text)
}

// classPerLine writes a character class without the line end. ranges is lo, hi, lo, hi, ….
func classPerLine(ranges []rune) string {
	var b strings.Builder
	add := func(lo, hi rune) {
		if lo <= hi {
			fmt.Fprintf(&b, `\x{%X}-\x{%X}`, lo, hi)
		}
	}
	for pair := range slices.Chunk(ranges, 2) {
		if lo, hi := pair[0], pair[1]; lo <= '\n' && '\n' <= hi {
			add(lo, '\n'-1)
			add('\n'+1, hi)
		} else {
			add(lo, hi)
		}
	}
	if b.Len() == 0 {
		return matchNothing
	}
	return "[" + b.String() + "]"
}

func repeatOf(re *syntax.Regexp) string {
	times := map[syntax.Op]string{syntax.OpStar: "*", syntax.OpPlus: "+", syntax.OpQuest: "?"}[re.Op]
	if re.Op == syntax.OpRepeat && re.Max < 0 {
		times = fmt.Sprintf("{%d,}", re.Min)
	} else if re.Op == syntax.OpRepeat {
		times = fmt.Sprintf("{%d,%d}", re.Min, re.Max)
	}
	if re.Flags&syntax.NonGreedy != 0 {
		times += "?"
	}
	return times
}

// literalOf returns the text of a pattern that matches only that text, with exact case. It returns "" for other
// patterns.
func literalOf(re *syntax.Regexp) string {
	if re.Op != syntax.OpLiteral || re.Flags&syntax.FoldCase != 0 || slices.Contains(re.Rune, '\n') {
		return ""
	}
	return string(re.Rune)
}

// hint says what to do about an expression that RE2 does not support.
func hint(err error) string {
	parse, ok := errors.AsType[*syntax.Error](err)
	switch {
	case !ok:
		return ""
	case strings.HasPrefix(parse.Expr, "(?=") || strings.HasPrefix(parse.Expr, "(?!") ||
		strings.HasPrefix(parse.Expr, "(?<"):
		return ". Look-ahead and look-behind are not supported: search for a simpler pattern and judge the lines found."
	case parse.Code == syntax.ErrInvalidEscape && len(parse.Expr) == 2 && parse.Expr[1] >= '1' && parse.Expr[1] <= '9':
		return ". Back-references are not supported: search for a simpler pattern and judge the lines found."
	case parse.Code == syntax.ErrInvalidRepeatSize:
		return ". At most 1000 repeats are supported."
	case parse.Code == syntax.ErrInvalidRepeatOp:
		return ". Possessive and doubled repeats are not supported: use a single *, + or ?."
	}
	return ". To find text as it stands, escape characters such as ( [ . * with a backslash."
}

// Lines yields the matching lines of a text in order, until yield returns false. Each line is given by its number, from
// 0, and its bytes without the line end. The last line may have no line end.
func (p *Pattern) Lines(text string, yield func(line, start, end int) bool) {
	if text == "" {
		return
	}
	line, counted := 0, 0
	for place := range p.candidates(text) {
		if place < counted || place == len(text) && strings.HasSuffix(text, "\n") {
			continue
		}
		start := strings.LastIndexByte(text[:place], '\n') + 1
		line += strings.Count(text[counted:start], "\n")
		end := len(text)
		if n := strings.IndexByte(text[place:], '\n'); n >= 0 {
			end = place + n
		}
		if (p.exact == nil || p.exact.MatchString(text[start:end])) && !yield(line, start, end) {
			return
		}
		line, counted = line+1, end+1
	}
}

// candidates yields places in a text, in order: at least one in each line that RE2 matches, and none in other lines.
func (p *Pattern) candidates(text string) iter.Seq[int] {
	return func(yield func(int) bool) {
		if p.literal != "" {
			yieldLiteral(text, p.literal, yield)
			return
		}
		from := 0
		if p.texts.knows(text) {
			if from = p.yieldLines(text, yield); from < 0 || from == len(text) {
				return
			}
		}
		for _, match := range p.lines.FindAllStringIndex(text[from:], -1) {
			if !yield(from + match[0]) {
				return
			}
		}
	}
}

// lineCost is how many bytes RE2 can search in the time of one call for a single line.
const lineCost = 512

// yieldLines looks at the lines with a text of the prefilter, and yields the starts of those that match. It returns the
// position from which to continue without the prefilter: a line after which there are too many such lines, or the end
// of the text. It returns -1 if yield returned false.
func (p *Pattern) yieldLines(text string, yield func(int) bool) int {
	tried, next := 0, 0
	for place := range p.texts.places(text) {
		if place < next {
			continue
		}
		start := strings.LastIndexByte(text[:place], '\n') + 1
		if tried++; tried*lineCost > place+len(text)/8 {
			return start
		}
		next = len(text)
		if n := strings.IndexByte(text[place:], '\n'); n >= 0 {
			next = place + n + 1
		}
		if p.match.MatchString(strings.TrimSuffix(text[start:next], "\n")) && !yield(start) {
			return -1
		}
	}
	return len(text)
}

func yieldLiteral(text, literal string, yield func(int) bool) {
	for from := 0; ; {
		offset := strings.Index(text[from:], literal)
		if offset < 0 || !yield(from+offset) {
			return
		}
		end := strings.IndexByte(text[from+offset:], '\n')
		if end < 0 {
			return
		}
		from += offset + end + 1
	}
}
