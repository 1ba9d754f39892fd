package files

import (
	"errors"
	"path"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/text/unicode/norm"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/grep"
)

// CompileInclude returns a filter of file names, which are folder/name. It ignores case, and in which of Unicode's
// canonical forms a letter such as é is written. Every filter accepts a file whose full name, or the last parts of it,
// equal include. What else it accepts depends on the form of include:
//
//   - With any of ^ $ ( ) [ ] \ + | it is a regular expression, searched anywhere in the name (Letta's rule, except for
//     braces, and for a class such as [a-c] beside * or ?, as in [a-c]*.md, unless .* is in it, too).
//   - Else with * or ? or {a,b} it is a glob: * and ? stay within a part of the name, ** crosses parts, [a-c] is one of
//     these characters and [!a-c] another one. A glob without a slash matches the last part or, without a class, the
//     whole name with * crossing slashes. A glob with a slash may match from any part on, but only from the first if it
//     begins with a slash. It also accepts everything below what it matches.
//   - Else it is text that the name contains. Empty text accepts all.
//
// ErrInvalid if include is neither a regular expression nor a glob, or too long. The filter then accepts only files of
// that name, and the caller returns the error if there are none.
func CompileInclude(include string) (accepts func(fullName string) bool, err error) {
	include = norm.NFC.String(strings.TrimSpace(include))
	if !isExpression(include) {
		include = strings.TrimPrefix(include, "./")
	}
	if n := utf8.RuneCountInString(include); n > grep.PatternChars {
		return func(string) bool { return false },
			db.Invalid("Invalid include: %d chars > %d limit. Use a shorter filter.", n, grep.PatternChars)
	}
	pattern, err := compilePattern(include)
	return func(name string) bool {
		name = norm.NFC.String(name)
		return endsWithName(name, include) || err == nil && pattern(name)
	}, err
}

// IncludeHint returns a sentence for a filter that accepts no file and may be meant as a list of several: how to write
// that. It is empty for other filters.
func IncludeHint(include string) string {
	if !strings.Contains(include, ",") || isExpression(include) || strings.ContainsAny(include, "{}") {
		return ""
	}
	var parts []string
	for part := range strings.SplitSeq(include, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) < 2 {
		return ""
	}
	return "A comma is part of a name here: to ask for the files of any of several patterns, write them as {" +
		strings.Join(parts, ",") + "}"
}

// literalOf returns a text that the lower case of each name has, in one of its parts, that an include accepts; "" if it
// finds none. It is the longest run of characters that are the same everywhere: no other character of Unicode becomes
// one of them in lower case or in its canonical form, as K of Kelvin becomes k, and the Greek question mark ;.
func literalOf(include string) string {
	include = strings.ToLower(norm.NFC.String(strings.TrimSpace(include)))
	if isExpression(include) || strings.ContainsAny(include, "{[") {
		return ""
	}
	runs := strings.FieldsFunc(strings.TrimPrefix(include, "./"), func(r rune) bool {
		return r >= utf8.RuneSelf || strings.ContainsRune("*?/iks;`", r)
	})
	longest := ""
	for _, run := range runs {
		if len(run) > len(longest) {
			longest = run
		}
	}
	return longest
}

// endsWithName reports whether a name consists of, or ends with, the given parts.
func endsWithName(fullName, parts string) bool {
	at := len(fullName) - len(parts)
	return at >= 0 && strings.EqualFold(fullName[at:], parts) && (at == 0 || fullName[at-1] == '/')
}

func compilePattern(include string) (func(fullName string) bool, error) {
	switch {
	case classes.FindString(include) == include && strings.Contains(include, ","):
		return nil, db.Invalid("Invalid include %s: it is a text, not a list. Ask for the files of any of several globs by "+
			"{*.md,*.txt}.", quoted(include))
	case isExpression(include):
		return compileExpression(include)
	case strings.ContainsAny(include, "*?{"):
		return compileGlob(include)
	}
	return regexp.MustCompile("(?i)" + regexp.QuoteMeta(include)).MatchString, nil
}

func compileExpression(include string) (func(fullName string) bool, error) {
	_, err := regexp.Compile(include)
	wrong, failed := errors.AsType[*syntax.Error](err)
	switch {
	case !failed:
		return regexp.MustCompile("(?i)" + include).MatchString, nil
	case strings.ContainsAny(include, `^$()\+|`) || !strings.ContainsAny(include, "*?"):
		return nil, db.Invalid("Invalid include %s: %v. Use a glob such as *.md or docs/**/*.go, or a regular expression.",
			quoted(include), err)
	case wrong.Code == syntax.ErrInvalidCharRange:
		return nil, invalidGlob(include)
	}
	return compileGlob(include)
}

// repeats are an expression's {2,3}, unlike a glob's {a,b}.
var repeats = regexp.MustCompile(`\{\d+,?\d*\}`)

// classes are [a-c], [^a-c] and, in a glob, [!a-c].
var classes = regexp.MustCompile(`\[[!^]?\]?[^\]]*\]`)

func isExpression(include string) bool {
	switch rest := classes.ReplaceAllString(include, ""); {
	case strings.ContainsAny(rest, `^$()[]+|`) || strings.Contains(include, `\`) || repeats.MatchString(include):
		return true
	case rest == include:
		return false
	default:
		return strings.Contains(include, ".*") || !strings.ContainsAny(rest, "*?")
	}
}

func compileGlob(glob string) (func(fullName string) bool, error) {
	for _, class := range classes.FindAllString(glob, -1) {
		if _, err := regexp.Compile(strings.Replace(class, "[!", "[^", 1)); err != nil {
			return nil, invalidGlob(glob)
		}
	}
	if !doublestar.ValidatePattern(glob) {
		return nil, invalidGlob(glob)
	}
	if n := alternatives(glob); n > maxAlternatives {
		return nil, db.Invalid("Invalid include %s: its braces have %d alternatives; at most %d are allowed. Use a simpler "+
			"glob.", quoted(glob), n, maxAlternatives)
	}
	glob = strings.ToLower(glob)
	if !strings.Contains(glob, "/") {
		hasClass := strings.Contains(glob, "[")
		return func(name string) bool {
			name = strings.ToLower(name)
			return doublestar.MatchUnvalidated(glob, path.Base(name)) ||
				!hasClass && doublestar.MatchUnvalidated(glob, strings.ReplaceAll(name, "/", "\x00")) // * crosses slashes
		}, nil
	}
	below := strings.TrimPrefix(glob, "/") + "/**"
	if !strings.HasPrefix(glob, "/") {
		below = "**/" + below
	}
	return func(name string) bool { return doublestar.MatchUnvalidated(below, strings.ToLower(name)) }, nil
}

func invalidGlob(glob string) error {
	return db.Invalid("Invalid include %s: it is neither a glob such as *.md or docs/**/*.go nor a regular expression.",
		quoted(glob))
}

// maxAlternatives bounds the time of a match, which grows with the number of alternatives in a glob's braces.
const maxAlternatives = 100

// alternatives returns how many names the braces of a valid glob expand to; nested ones count as if they followed each
// other.
func alternatives(glob string) int {
	all, open := 1, []int{}
	for _, c := range glob {
		switch n := len(open); {
		case c == '{':
			open = append(open, 1)
		case c == ',' && n > 0:
			open[n-1]++
		case c == '}' && n > 0:
			all = min(all*open[n-1], 1_000_000)
			open = open[:n-1]
		}
	}
	return all
}
