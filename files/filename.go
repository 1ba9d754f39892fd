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

// NameChars is the most characters a file's name may have (Letta: 255).
const NameChars = 255

// extChars is the longest ending that counts as an extension; what is longer is part of the stem.
const extChars = 32

// CleanName returns the name under which an upload is stored, from the name the client gave its file: the part after
// the last slash or backslash, in Unicode normal form C, without control, bidirectional and invisible characters, and
// without blanks at its ends. A name of more than NameChars characters is cut before its extension; nothing left is
// "upload". ErrInvalid for "." and "..".
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

// CleanPath returns the name that a caller chose for a file, where slashes make folders: each part is cleaned as
// CleanName does, empty parts are dropped. ErrInvalid for a part of "." or "..", for no part at all, and for more than
// NameChars characters.
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

// Suffixed returns the n-th other name for a file whose name is taken: plan.md becomes plan_(1).md. It has at most
// NameChars characters, the stem shortened to fit, and differs for each n.
func Suffixed(name string, n int) string {
	stem, ext := splitExt(name)
	tail := fmt.Sprintf("_(%d)%s", n, ext)
	return strings.TrimRight(clip(stem, NameChars-utf8.RuneCountInString(tail)), "/ ") + tail
}

func isSlash(r rune) bool { return r == '/' || r == '\\' }

// cleanText drops what has no place in a name, wherever it stands. The joiners U+200C and U+200D stay: scripts and
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

// splitExt parts a name before its last extension. The dots a name begins with belong to the stem: .env has no
// extension.
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

// quoted is a name or pattern as an error message shows it: escaped, and not longer than a line.
func quoted(s string) string {
	const most = 120
	if short := clip(s, most); short != s {
		s = short + "…"
	}
	return fmt.Sprintf("%q", s)
}
