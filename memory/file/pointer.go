package file

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// erasedName is a part of a path from which a text was erased.
const erasedName = `\[erased\]`

var (
	anyURL  = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://\S+`)
	pointer = regexp.MustCompile(`/memories/(?:[\pL\pM\p{Nd}_.+@=&!#/-]|` + erasedName + `)+|` +
		`(?:[\pL\pN_@+.-]|` + erasedName + `)*(?:[\pL\pN_]|` + erasedName + `)(?:/(?:[\pL\pN_@+.-]|` + erasedName +
		`)+)*\.(?:md|txt|json|ya?ml|csv|toml)\b`)

	// link matches a Markdown link or image: its text, and its destination with or without angle brackets.
	link = regexp.MustCompile(`!?\[((?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\(\s*(<(?:[^<>\\]|\\.)*>|` +
		`(?:[^\s<>()\\]|\\.|\((?:[^\s()\\]|\\.)*\))+)(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)`)
	scheme   = regexp.MustCompile(`^(?:[a-zA-Z][a-zA-Z0-9+.-]*:|//|#)`)
	fragment = regexp.MustCompile(`#[^./#]*$`)
	escaped  = regexp.MustCompile(`\\([!-/:-@\[-\x60{-~])`)

	// foreign matches names of a project's documents, and of files that are not notes.
	foreign = regexp.MustCompile(`^[A-Z_]+\.md$|\.(?:txt|json|ya?ml|csv|toml)$`)

	explicit = regexp.MustCompile(`^(?:\./)?(?:/memories|memory|memories)/`)
)

// span is a pointer in a text: the path, and the bytes of the text that contain it.
type span struct {
	path     string
	from, to int
	link     bool // the bytes are the destination of a Markdown link
}

// spansOf returns the pointers in a text, in order. rest is the text with spaces in place of the pointers, of URLs, and
// of the texts of links.
func spansOf(text string) (all []span, rest string) {
	blanked := []byte(text)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			blanked[i] = ' '
		}
	}
	for _, match := range link.FindAllStringSubmatchIndex(text, -1) {
		blank(match[0], match[1])
		if path := destination(text[match[4]:match[5]]); path != "" {
			all = append(all, span{path, match[4], match[5], true})
		}
	}
	for _, match := range anyURL.FindAllIndex(blanked, -1) {
		blank(match[0], match[1])
	}
	for _, match := range pointer.FindAllIndex(blanked, -1) {
		path := strings.TrimRight(string(blanked[match[0]:match[1]]), ".:!?")
		all = append(all, span{path, match[0], match[0] + len(path), false})
		blank(match[0], match[1])
	}
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	return all, string(blanked)
}

// destination returns the path to which a link's destination leads, as CommonMark reads it. It is empty for a URL or a
// place in the same file.
func destination(text string) string {
	text = strings.TrimSuffix(strings.TrimPrefix(text, "<"), ">")
	if scheme.MatchString(text) {
		return ""
	}
	text = escaped.ReplaceAllString(fragment.ReplaceAllString(text, ""), "$1")
	if path, err := url.PathUnescape(text); err == nil {
		text = path
	}
	return strings.TrimSpace(text)
}

// pointersOf returns the paths and file names in a text.
func pointersOf(text string) (found []string) {
	all, _ := spansOf(text)
	for _, s := range all {
		found = append(found, s.path)
	}
	return found
}

// withoutPointers returns a text without paths, file names and URLs. The texts of links stay.
func withoutPointers(text string) string {
	if strings.Contains(text, "](") {
		text = link.ReplaceAllString(text, " $1 ")
	}
	if !mayPoint(text) {
		return text
	}
	_, rest := spansOf(text)
	return rest
}

// endings are extensions of paths that are recognized without /memories before them.
var endings = []string{".md", ".txt", ".json", ".yml", ".yaml", ".csv", ".toml"}

// mayPoint reports whether a text may have a link, a URL or a path. It is a quick check; most texts have none.
func mayPoint(text string) bool {
	return strings.Contains(text, "](") || strings.Contains(text, "://") || strings.Contains(text, "/memories/") ||
		slices.ContainsFunc(endings, func(e string) bool { return strings.Contains(text, e) })
}

// Pointer returns a path as an index writes it: plain, or as a link if the path has characters that would end it within
// a text.
func Pointer(path string) string {
	if found := pointersOf(path); len(found) == 1 && found[0] == path {
		return path
	}
	name := strings.NewReplacer("[", "(", "]", ")").Replace(path[strings.LastIndex(path, "/")+1:])
	return "[" + name + "](" + linked(path) + ")"
}

// linked returns a path as the destination of a link.
func linked(path string) string {
	path = strings.ReplaceAll(path, "%", "%25")
	if strings.ContainsAny(path, " ()[]<>#'") {
		return "<" + strings.ReplaceAll(path, "#", "%23") + ">"
	}
	return path
}

// repointed returns a line with its pointers changed after a renaming.
func repointed(line, from, to string) string {
	all, _ := spansOf(line)
	for _, s := range slices.Backward(all) {
		moved := moveTo(s.path, from, to)
		if moved == s.path {
			continue
		}
		if s.link {
			moved = linked(moved)
		} else {
			moved = Pointer(moved)
		}
		line = line[:s.from] + moved + line[s.to:]
	}
	return line
}

// readings returns the paths that a pointer may stand for: the pointer itself, and its part after each letter of a
// script without spaces between words. In such a script, the words before a path may look like a part of it.
func readings(p string) []string {
	all := []string{p}
	for i, r := range p {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao,
			unicode.Khmer, unicode.Myanmar) {
			all = append(all, p[i+len(string(r)):])
		}
	}
	return all
}

// candidates returns the paths that a pointer may mean.
func candidates(p string) (all []string) {
	for _, p := range readings(p) {
		all = append(all, meant(p)...)
	}
	return all
}

// meant returns the paths that one reading of a pointer may mean.
func meant(p string) []string {
	if strings.HasPrefix(p, Root) {
		return []string{strings.TrimSuffix(p, "/")}
	}
	p = strings.TrimSuffix(strings.TrimPrefix(p, "./"), "/")
	all := []string{Root + "/" + p}
	for _, prefix := range []string{"memory/", "memories/"} {
		if rest, ok := strings.CutPrefix(p, prefix); ok {
			all = append(all, Root+"/"+rest)
		}
	}
	return all
}

// leads reports whether a pointer leads to a file or a directory of the tree.
func (c *indexCheck) leads(p string) bool {
	return slices.ContainsFunc(candidates(p), func(path string) bool {
		return c.rules.IsIndex(path) || slices.ContainsFunc(c.others, func(f File) bool { return within(f.Path, path) })
	})
}

// dangling returns a pointer of a line that leads to no file of the tree, or "". The name of a file outside the tree is
// ignored if the line also points to a file, or is in a section where it may tell a short fact.
func (c *indexCheck) dangling(l indexLine) string {
	mayTell := slices.ContainsFunc(l.pointers, c.leads) || inlineSections.MatchString(l.section)
	for _, p := range l.pointers {
		if !c.leads(p) && (explicit.MatchString(p) || !foreign.MatchString(p) || !mayTell) {
			return p
		}
	}
	return ""
}

// moveTo returns a pointer after its file was renamed.
func moveTo(p, from, to string) string {
	for _, reading := range readings(p) {
		for _, path := range meant(reading) {
			if !within(path, from) {
				continue
			}
			moved := to + strings.TrimPrefix(path, from)
			if !strings.HasPrefix(reading, Root) {
				moved = strings.TrimPrefix(moved, Root+"/")
			}
			if strings.HasSuffix(reading, "/") {
				moved += "/"
			}
			return strings.TrimSuffix(p, reading) + moved
		}
	}
	return p
}

// pointedTo reports whether a line of an index points to a file, or to a directory around it.
func pointedTo(lines []indexLine, path string) bool {
	return slices.ContainsFunc(lines, func(l indexLine) bool {
		return slices.ContainsFunc(l.pointers, func(p string) bool {
			return slices.ContainsFunc(candidates(p), func(at string) bool { return within(path, at) })
		})
	})
}
