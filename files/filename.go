package files

import (
	"fmt"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/loci-memory/loci/db"
)

// NameChars is how many characters a file's name may have (Letta: 255).
const NameChars = 255

// extChars is how many characters an extension may have. A longer one counts as part of the stem.
const extChars = 32

// CleanName returns the name under which an upload is stored. It takes the part of the client's name behind the last
// slash or backslash, in Unicode normal form C. It drops control, bidirectional and invisible characters, and spaces at
// both ends. It shortens the stem if there are more than NameChars characters. If nothing is left, it returns "upload".
// ErrInvalid for "." and "..".
func CleanName(raw string) (string, error) {
	trimmed := strings.TrimRightFunc(cleanText(raw), func(r rune) bool { return isSlash(r) || unicode.IsSpace(r) })
	name := strings.TrimSpace(trimmed[strings.LastIndexFunc(trimmed, isSlash)+1:])
	if name == "" {
		return "upload", nil
	}
	if err := checkPart(name, raw); err != nil {
		return "", err
	}
	stem, ext := splitExt(name)
	return strings.TrimSpace(clip(stem, NameChars-utf8.RuneCountInString(ext)) + ext), nil
}

// CleanPath returns the cleaned name that a caller chose for a file, which may contain slashes. It cleans each part as
// CleanName does, and drops empty parts. ErrInvalid if a part is "." or "..", if there are no parts, or if there are
// more than NameChars characters.
func CleanPath(raw string) (string, error) {
	var parts []string
	for _, part := range strings.FieldsFunc(cleanText(raw), isSlash) {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		if err := checkPart(part, raw); err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	name := strings.Join(parts, "/")
	if name == "" {
		return "", db.Invalid("The name %s has nothing in it that can name a file. Give a name such as notes/plan.md.",
			quoted(raw))
	}
	if n := utf8.RuneCountInString(name); n > NameChars {
		return "", db.Invalid("The name %s has %d characters; a file name has at most %d. Give a shorter one.",
			quoted(raw), n, NameChars)
	}
	return name, nil
}

// Suffixed returns the n-th alternative to a name that is taken: plan_(1).md for plan.md. It has at most NameChars
// characters, with a shortened stem if necessary, and differs for each n.
func Suffixed(name string, n int) string {
	stem, ext := splitExt(name)
	tail := fmt.Sprintf("_(%d)%s", n, ext)
	return strings.TrimRight(clip(stem, NameChars-utf8.RuneCountInString(tail)), "/ ") + tail
}

func isSlash(r rune) bool { return r == '/' || r == '\\' }

// cleanText removes the characters that no name may have. It keeps the joiners U+200C and U+200D, because scripts and
// emoji need them.
func cleanText(raw string) string {
	return norm.NFC.String(strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) ||
			r == '\u200b' || r == '\u2060' || r == '\ufeff' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(raw, "\ufffd")))
}

func checkPart(part, raw string) error {
	if part == "." || part == ".." {
		return db.Invalid("The name %s is not allowed: %q names a directory, not a file. Give the file another name.",
			quoted(raw), part)
	}
	return nil
}

// splitExt splits a name before its last extension. Leading dots belong to the stem, so .env has no extension.
func splitExt(name string) (stem, ext string) {
	base := strings.TrimLeft(name[strings.LastIndexByte(name, '/')+1:], ".")
	ext = path.Ext(base)
	if utf8.RuneCountInString(ext) > extChars {
		return name, ""
	}
	return strings.TrimSuffix(name, ext), ext
}

// clip returns the first n characters of s.
func clip(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// quoted returns a name or pattern for an error message: escaped, and at most 120 characters.
func quoted(s string) string {
	if short := clip(s, 120); short != s {
		s = short + "…"
	}
	return fmt.Sprintf("%q", s)
}
