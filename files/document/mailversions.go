package document

import (
	"regexp"
	"strings"
	"unicode"
)

// bestVersion returns the plain version of a text, or another one that says more, and what only the other version says.
func bestVersion(parts []mailPart, texts []string) string {
	plain, other := "", ""
	for i, text := range texts {
		version := &other
		if parts[i].mediaType == "text/plain" {
			version = &plain
		}
		if len(strings.Fields(text)) > len(strings.Fields(*version)) {
			*version = text
		}
	}
	if saysMore(other, plain) {
		return joinTexts([]string{other, onlyIn("plain text", plain, other, hasDigit)})
	}
	return joinTexts([]string{plain, onlyIn("HTML", other, plain, func(string) bool { return true })})
}

// A version says more than the plain one if it has all its words and others, or links where the plain one has no
// address; if it is over twice as long; or if it has so many words that the plain one lacks, this share of its words,
// and lacks fewer of the plain one's words. The plain version may be a stub: "This mail is in HTML."
const (
	moreWords = 3
	moreShare = 0.2
)

func saysMore(version, plain string) bool {
	said, of := wordsIn(version), wordsIn(plain)
	if len(of) == 0 {
		return len(said) > 0
	}
	more, less := lacking(said, of), lacking(of, said)
	switch {
	case len(strings.Fields(version)) > 2*len(strings.Fields(plain))+10:
		return true
	case less == 0:
		return more > 0 || hasAddress(version) && !hasAddress(plain)
	}
	return more >= moreWords && float64(more) >= moreShare*float64(len(said)) && more > less
}

// onlyIn returns the lines of one version with words that another version lacks, if one of these words counts, below a
// heading that names the version.
func onlyIn(name, version, other string, counts func(word string) bool) string {
	known := wordsIn(other)
	lacksAddresses := hasAddress(version) && !hasAddress(other)
	var lines []string
	for line := range strings.SplitSeq(version, "\n") {
		isLacking := lacksAddresses && hasAddress(line)
		for word := range wordsIn(line) {
			isLacking = isLacking || !known[word] && counts(word)
		}
		if isLacking {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return "[Only in the " + name + " of the message:]\n" + strings.Join(lines, "\n")
}

func hasDigit(word string) bool   { return strings.ContainsFunc(word, unicode.IsDigit) }
func hasAddress(text string) bool { return strings.Contains(text, "://") }

// wordsIn returns the different words and numbers of a text, in lower case, without those in the targets of links.
func wordsIn(text string) map[string]bool {
	words := map[string]bool{}
	text = strings.ToLower(linkTarget.ReplaceAllString(text, " "))
	between := func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) }
	for word := range strings.FieldsFuncSeq(text, between) {
		words[word] = true
	}
	return words
}

// linkTarget matches the target of a link or a picture in Markdown, and an address by itself.
var linkTarget = regexp.MustCompile(`\]\([^)]*\)|https?://\S+`)

// lacking counts the words that others lack.
func lacking(words, others map[string]bool) (n int) {
	for word := range words {
		if !others[word] {
			n++
		}
	}
	return n
}
