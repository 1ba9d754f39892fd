package file

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// erasedName is a part of a path of which a text was erased.
const erasedName = `\[erased\]`

var (
	anyURL  = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://\S+`)
	pointer = regexp.MustCompile(`/memories/(?:[\pL\pM\p{Nd}_.+@=&!#/-]|` + erasedName + `)+|` +
		`(?:[\pL\pN_@+.-]|` + erasedName + `)*(?:[\pL\pN_]|` + erasedName + `)(?:/(?:[\pL\pN_@+.-]|` + erasedName +
		`)+)*\.(?:md|txt|json|ya?ml|csv|toml)\b`)

	// link matches a link of Markdown: its text, and its destination with or without angle brackets. An image is one.
	link = regexp.MustCompile(`!?\[((?:[^\[\]\\]|\\.|\[[^\[\]]*\])*)\]\(\s*(<(?:[^<>\\]|\\.)*>|` +
		`(?:[^\s<>()\\]|\\.|\((?:[^\s()\\]|\\.)*\))+)(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)`)
	scheme   = regexp.MustCompile(`^(?:[a-zA-Z][a-zA-Z0-9+.-]*:|//|#)`)
	fragment = regexp.MustCompile(`#[^./#]*$`)
	escaped  = regexp.MustCompile(`\\([!-/:-@\[-\x60{-~])`)

	// foreign matches names of files that the documents of a project have, and files that are no notes.
	foreign = regexp.MustCompile(`^[A-Z_]+\.md$|\.(?:txt|json|ya?ml|csv|toml)$`)

	explicit = regexp.MustCompile(`^(?:\./)?(?:/memories|memory|memories)/`)
)

// span is a pointer in a text: its path, and the bytes of the text that write it.
type span struct {
	path     string
	from, to int
	link     bool // they are the destination of a link of Markdown
}

// spansOf returns the pointers in a text, in their order, and the text with spaces in place of them, of URLs, and of
// the texts of links.
func spansOf(text string) (all []span, rest string) {
	left := []byte(text)
	blank := func(from, to int) {
		for i := from; i < to; i++ {
			left[i] = ' '
		}
	}
	for _, at := range link.FindAllStringSubmatchIndex(text, -1) {
		blank(at[0], at[1])
		if path := destination(text[at[4]:at[5]]); path != "" {
			all = append(all, span{path, at[4], at[5], true})
		}
	}
	for _, at := range anyURL.FindAllIndex(left, -1) {
		blank(at[0], at[1])
	}
	for _, at := range pointer.FindAllIndex(left, -1) {
		path := strings.TrimRight(string(left[at[0]:at[1]]), ".:!?")
		all = append(all, span{path, at[0], at[0] + len(path), false})
		blank(at[0], at[1])
	}
	slices.SortFunc(all, func(a, b span) int { return a.from - b.from })
	return all, string(left)
}

// destination returns the path that the destination of a link names, as CommonMark reads it; empty if it is a URL or a
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

// pointersOf returns the paths and names of files in a text.
func pointersOf(text string) (found []string) {
	all, _ := spansOf(text)
	for _, s := range all {
		found = append(found, s.path)
	}
	return found
}

// withoutPointers returns a text without the paths and names of files in it, and without URLs. The texts of links stay.
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

// endings are those of the paths that a text may name without their tree.
var endings = []string{".md", ".txt", ".json", ".yml", ".yaml", ".csv", ".toml"}

// mayPoint reports whether a text may have a link, a URL, or a path: most have none, and these are looked for slowly.
func mayPoint(text string) bool {
	return strings.Contains(text, "](") || strings.Contains(text, "://") || strings.Contains(text, "/memories/") ||
		slices.ContainsFunc(endings, func(e string) bool { return strings.Contains(text, e) })
}

// Pointer returns a path as an index writes it: alone, or as a link where it has characters that end a path in a text.
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

// repointed returns a line whose pointers to what is renamed follow it.
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

// readings returns a pointer, and what is left of it after each letter of a script that is written without spaces: the
// words before a path may look like a part of it.
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

// leads reports whether a pointer names a file or a directory of the tree.
func (c *indexCheck) leads(p string) bool {
	return slices.ContainsFunc(candidates(p), func(path string) bool {
		return c.rules.IsIndex(path) || slices.ContainsFunc(c.others, func(f File) bool { return within(f.Path, path) })
	})
}

// dangling returns a pointer of a line that names no file of the tree; empty if each one exists. The name of a file of
// another place does not count where the line points to a file, or may tell a short fact.
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
