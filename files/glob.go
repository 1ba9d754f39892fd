package files

import (
	"path"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files/grep"
)

// CompileInclude reads a filter of file names, which are folder/name, and ignores case. It is one of three.
//
// With any of ^ $ ( ) [ ] \ + | it is a regular expression, searched anywhere in the name (Letta's rule, but for braces). Else with * or
// ? or {a,b} it is a glob: * and ? stay within a part of the name, ** does not. A glob without a slash is for the last part, or for the
// whole name with * crossing slashes; one with a slash may begin at any part, or only at the first with a slash in front, and takes all
// that is below what it names. Else it is text that the name contains. An empty filter takes all.
//
// ErrInvalid if it is not a regular expression, or too long.
func CompileInclude(include string) (func(fullName string) bool, error) {
	include = strings.TrimSpace(include)
	if n := utf8.RuneCountInString(include); n > grep.PatternChars {
		return nil, db.Invalid("Invalid include: %d chars > %d limit. Use a shorter filter.", n, grep.PatternChars)
	}
	switch {
	case isExpression(include):
		_, err := regexp.Compile(include)
		if err == nil {
			return regexp.MustCompile("(?i)" + include).MatchString, nil
		}
		if strings.ContainsAny(include, `^$()\+|`) || !strings.ContainsAny(include, "*?") {
			return nil, db.Invalid("Invalid include %s: %v. Use a glob such as *.md or docs/**/*.go, or a regular expression.", quoted(include), err)
		}
		return globFilter(include)
	case strings.ContainsAny(include, "*?{"):
		return globFilter(include)
	}
	return regexp.MustCompile("(?i)" + regexp.QuoteMeta(include)).MatchString, nil
}

// repeats are an expression's {2,3}, unlike a glob's {a,b}.
var repeats = regexp.MustCompile(`\{\d+,?\d*\}`)

func isExpression(include string) bool {
	return strings.ContainsAny(include, `^$()[]\+|`) || repeats.MatchString(include)
}

func globFilter(glob string) (func(string) bool, error) {
	if !strings.Contains(glob, "/") {
		last, lastErr := compileGlob("^", glob, "[^/]", "$")
		whole, wholeErr := compileGlob("^", glob, ".", "$")
		if lastErr != nil || wholeErr != nil {
			return nil, invalidGlob(glob)
		}
		return func(name string) bool { return last.MatchString(path.Base(name)) || whole.MatchString(name) }, nil
	}
	start := "(?:^|/)"
	if strings.HasPrefix(glob, "/") {
		start = "^"
	}
	re, err := compileGlob(start, strings.TrimPrefix(strings.TrimPrefix(glob, "./"), "/"), "[^/]", "(?:/.*)?$")
	if err != nil {
		return nil, invalidGlob(glob)
	}
	return re.MatchString, nil
}

func invalidGlob(glob string) error {
	return db.Invalid("Invalid include %s: it is neither a glob such as *.md or docs/**/*.go nor a regular expression.", quoted(glob))
}

// globTokens are what has a meaning in a glob, longest first.
var globTokens = regexp.MustCompile(`\*\*/|\*+|\?|\{[^{}]*,[^{}]*\}|\[[^\[\]]+\]`)

// compileGlob writes a glob as an expression; one is what a single * or ? stands for.
func compileGlob(start, glob, one, end string) (*regexp.Regexp, error) {
	var b strings.Builder
	at := 0
	for _, token := range globTokens.FindAllStringIndex(glob, -1) {
		b.WriteString(regexp.QuoteMeta(glob[at:token[0]]))
		b.WriteString(globToken(glob[token[0]:token[1]], one))
		at = token[1]
	}
	b.WriteString(regexp.QuoteMeta(glob[at:]))
	return regexp.Compile("(?is)" + start + b.String() + end)
}

func globToken(token, one string) string {
	switch {
	case token == "**/":
		return "(?:.*/)?"
	case token == "*":
		return one + "*"
	case token == "?":
		return one
	case token[0] == '*':
		return ".*"
	case token[0] == '[':
		return strings.Replace(token, "[!", "[^", 1)
	}
	parts := strings.Split(token[1:len(token)-1], ",")
	for i, part := range parts {
		part = regexp.QuoteMeta(part)
		parts[i] = strings.NewReplacer(`\*`, one+"*", `\?`, one).Replace(part)
	}
	return "(?:" + strings.Join(parts, "|") + ")"
}
