package chunker

import (
	"regexp"
	"strings"
)

// faq follows questions and their answers. A question behind the answer to another question begins a new chunk, however
// short both are, because a chunk with several questions is harder to find by any one of them. Questions without text
// between them, as in a table of contents, share a chunk.
type faq struct {
	answered bool // text follows the last question
}

// read reads a line that is not blank, and reports whether a chunk should begin with it. start says that the line
// begins a paragraph, heading that it is a heading.
func (f *faq) read(l line, start, heading bool) bool {
	if !start || !isQuestion(l, heading) {
		f.answered = f.answered || !heading
		return false
	}
	answered := f.answered
	f.answered = false
	return answered
}

// maxQuestion is the maximum length of a question in bytes.
const maxQuestion = 400

var (
	labelled = regexp.MustCompile(`^(?i:[*_]{0,3}(?:Q|Question)[ .]{0,2}\d{0,4}[.:)])`) // Q: Q1. **Question 3:**
	numbered = regexp.MustCompile(`^[*_]{0,3}\(?\d{1,3}(?:\.\d{1,3}){0,4}[.:)]*\s`)     // 1. 2.3 (4)
	bold     = regexp.MustCompile(`^(?:\*\*|__).*(?:\*\*|__)[ :]*$`)                    // **How?**
)

// isQuestion reports whether a line is a question with an answer to follow. Such a line has a label ("Q:"), or ends in
// a question mark and is a heading, bold, numbered, or a term with a definition.
func isQuestion(l line, heading bool) bool {
	text := strings.TrimSpace(l.head)
	if labelled.MatchString(text) {
		return true
	}
	if len(text) > maxQuestion {
		return false
	}
	switch asks := strings.HasSuffix(strings.TrimRight(text, "*_# \t\"')"), "?"); {
	case numbered.MatchString(text):
		return asks || strings.HasSuffix(strings.TrimSpace(l.next()), "?")
	case !asks:
		return false
	}
	return heading || bold.MatchString(text) || strings.HasPrefix(l.following(), ": ")
}

// following returns the head of the next line that is not blank. At most one blank line is skipped; otherwise it
// returns "".
func (l line) following() string {
	next := l.next()
	if next != "" || l.after < 0 || l.after >= len(l.text) {
		return next
	}
	below, _ := lineAt(l.text, l.after, len(l.text))
	return below.next()
}
