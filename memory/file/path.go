package file

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/loci-memory/loci/db"
)

// Root is the path of the directory with all files of a tree.
const Root = "/memories"

// Limits of a path.
const (
	maxPathBytes = 1_024
	maxNameBytes = 255
	maxDepth     = 16
)

// punctuation lists the characters that a name may have besides letters, digits and marks.
const punctuation = " -_.,+@()[]=&'!#"

// ParsePath returns the path of a file or directory in its only valid form, without a slash at the end. ErrInvalid if
// the path is neither Root nor below it.
func ParsePath(path string) (string, error) {
	refuse := func(why string) (string, error) {
		return "", db.Invalid("the path %q %s; a path is %s or begins with %s/, as %s/notes.md does", db.Short(path), why,
			Root, Root, Root)
	}
	if len(path) > maxPathBytes || !utf8.ValidString(path) {
		return refuse("is longer than 1,024 bytes, or no UTF-8")
	}
	first, below, nested := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	if !strings.HasPrefix(path, "/") || "/"+first != Root {
		return refuse("is outside of " + Root)
	}
	if !nested || below == "" {
		return Root, nil
	}
	below = strings.TrimSuffix(below, "/")
	names := strings.Split(below, "/")
	if len(names) > maxDepth {
		return refuse("is deeper than 16 directories")
	}
	for _, name := range names {
		if why := faultOf(name); why != "" {
			return refuse(why)
		}
	}
	return Root + "/" + below, nil
}

// ParseFile is ParsePath for the path of a file.
func ParseFile(path string) (string, error) {
	parsed, err := ParsePath(path)
	if err == nil && (parsed == Root || strings.HasSuffix(path, "/")) {
		return "", db.Invalid("the path %q names a directory; name a file, such as %s/notes.md", db.Short(path), Root)
	}
	return parsed, err
}

// faultOf says what is wrong with a name in a path, or "".
func faultOf(name string) string {
	switch {
	case name == "":
		return "has an empty name between two slashes"
	case len(name) > maxNameBytes:
		return "has a name of more than 255 bytes"
	case strings.HasPrefix(name, "."):
		return "has a name that begins with a period"
	case strings.HasSuffix(name, ".") || strings.TrimSpace(name) != name:
		return "has a name that ends with a period, or begins or ends with a space"
	case !norm.NFC.IsNormalString(name):
		return "has a letter and its accent as two characters (its names must be normalized: NFKC)"
	case !norm.NFKC.IsNormalString(name):
		return "has characters in a form of compatibility (its names must be normalized: NFKC)"
	}
	latin, other := false, false
	for _, r := range name {
		if !allowed(r) {
			return "has a character that names may not have: they have letters, digits, spaces and " + punctuation[1:]
		}
		if !unicode.IsLetter(r) && !unicode.IsMark(r) {
			latin, other = false, false
		}
		latin = latin || unicode.Is(unicode.Latin, r)
		other = other || unicode.In(r, unicode.Cyrillic, unicode.Greek)
		if latin && other {
			return "has a word that mixes Latin letters with letters of another script that look like them"
		}
	}
	return ""
}

func allowed(r rune) bool {
	if r < utf8.RuneSelf && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
		return strings.ContainsRune(punctuation, r)
	}
	return unicode.In(r, unicode.L, unicode.M, unicode.Nd) &&
		!unicode.In(r, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// fold returns a path without its case. The paths of two files of a tree may not differ only in case.
func fold(path string) string { return cases.Fold().String(path) }

// within reports whether a path is dir or below it.
func within(path, dir string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
