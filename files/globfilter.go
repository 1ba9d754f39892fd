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

// CompileInclude returns a filter for file names, which are folder/name. It ignores case, and treats Unicode's
// canonical forms of a letter such as é as equal. Every filter accepts a file if its full name or the name's last parts
// equal include. What else it accepts depends on the form of include:
//
//   - With any of ^ $ ( ) [ ] \ + | it is a regular expression, searched anywhere in the name. This is Letta's rule.
//     Braces
//     are an exception, and so is a class such as [a-c] together with * or ?, as in [a-c]*.md, unless .* is there, too.
//   - Otherwise with * or ? or {a,b} it is a glob: * and ? stay within a part of the name, ** crosses parts, [a-c] is
//     one
//     of these characters and [!a-c] any other. A glob without a slash matches the last part. If it has no class, it
//     also
//     matches the whole name, and then * crosses slashes. A glob with a slash may match from any part on; if it begins
//     with a slash, only from the first. It also accepts everything below what it matches.
//   - Otherwise it is text that the name must contain. An empty text accepts all names.
//
// ErrInvalid if include is neither a regular expression nor a glob, or is too long. The filter then accepts only files
// with exactly that name, and the caller returns the error if there are none.
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

// IncludeHint returns a hint for a filter that accepts no file and may be meant as a list: how to write a list. It is
// empty for other filters.
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

// literalOf returns a text that every accepted name contains within one of its parts, in lower case. It returns "" if
// it finds none. The text is the longest run of characters with only one form. A character does not count if another
// Unicode character becomes it in lower case or in its canonical form, as the Kelvin sign becomes k, and the Greek
// question mark becomes ;.
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

// endsWithName reports whether a name equals the given parts, or ends with them.
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

// repeats match a regular expression's {2,3}, as opposed to a glob's {a,b}.
var repeats = regexp.MustCompile(`\{\d+,?\d*\}`)

// classes match [a-c], [^a-c] and, in a glob, [!a-c].
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
				!hasClass && doublestar.MatchUnvalidated(glob, strings.ReplaceAll(name, "/", "\x00")) // here * crosses slashes
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

// maxAlternatives limits the alternatives in a glob's braces, because the time of a match grows with their number.
const maxAlternatives = 100

// alternatives returns how many names the braces of a valid glob expand to. It counts nested braces as if they followed
// each other.
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
