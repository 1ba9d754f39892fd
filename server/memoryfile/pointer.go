package memoryfile

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

var (
	anyURL  = regexp.MustCompile(`[a-zA-Z][a-zA-Z0-9+.-]*://\S+`)
	pointer = regexp.MustCompile(`/memories/[\pL\pM\p{Nd}_.+@=&!#/-]+|` +
		`[\pL\pN_@+.-]*[\pL\pN_](?:/[\pL\pN_@+.-]+)*\.(?:md|txt|json|ya?ml|csv|toml)\b`)

	// foreign matches names of files that the documents of a project have, and files that are no notes.
	foreign = regexp.MustCompile(`^[A-Z_]+\.md$|\.(?:txt|json|ya?ml|csv|toml)$`)

	explicit = regexp.MustCompile(`^(?:\./)?(?:/memories|memory|memories)/`)
)

// pointersOf returns the paths and names of files in a text.
func pointersOf(text string) (found []string) {
	for _, p := range pointer.FindAllString(anyURL.ReplaceAllString(text, " "), -1) {
		found = append(found, strings.TrimRight(p, ".:!?"))
	}
	return found
}

// withoutPointers returns a text without the paths and names of files in it, and without URLs.
func withoutPointers(text string) string {
	return pointer.ReplaceAllString(anyURL.ReplaceAllString(text, " "), " ")
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
	p = strings.TrimPrefix(p, "./")
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

// dangling returns a pointer of a line that names no file of the tree; empty if there is none. The name of a file of
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
	named := strings.TrimRight(p, ".:!?")
	for _, reading := range readings(named) {
		for _, path := range meant(reading) {
			if !within(path, from) {
				continue
			}
			moved := to + strings.TrimPrefix(path, from)
			if !strings.HasPrefix(reading, Root) {
				moved = strings.TrimPrefix(moved, Root+"/")
			}
			return strings.TrimSuffix(named, reading) + moved + p[len(named):]
		}
	}
	return p
}
