package tool

import (
	"fmt"
	"math"
	"strings"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// headChars bounds the characters of a view's head.
const headChars = 200

// gateChars returns how many characters of a view are read to find out whether it may be opened. Half of them suffice
// for the text of a view within the bounds; the rest is for its line numbers and its head.
func gateChars(b *policy.ReadBounds) int { return 2*b.MaxBytes + 5*headChars }

// admit returns an ErrInvalid if one of the views is above the bounds; then none is opened. It says so of each file,
// and names calls that work: to open those that fit, to find the place, and to read a part.
func admit(b *policy.ReadBounds, has recall.Toolset, all []files.Wanted) error {
	var refused []files.Wanted
	var fitting []nextRequest
	var others strings.Builder
	for _, w := range all {
		switch {
		case isAdmitted(b, w):
			fitting = append(fitting, again(w))
			fmt.Fprintf(&others, " %s was not opened, either, but fits.", fileName(w.Name))
			continue
		case len(refused) > 0:
			fmt.Fprintf(&others, " %s was not opened, for the same reason (%s).", fileName(w.Name), count(w.Lines, "line"))
		}
		refused = append(refused, w)
	}
	if len(refused) == 0 {
		return nil
	}
	about := refused[0]
	text := fmt.Sprintf("%s was not opened: these lines have more than %s, which one read may have; the file has %s.",
		fileName(about.Name), gate(b), count(about.Lines, "line")) + others.String()
	if len(fitting) > 0 {
		text += "\nTo open what fits, call: " + openCalls(fitting, false)
	}
	return db.Invalid("%s", text+partOf(b, has, about))
}

// isAdmitted reports whether a view may be opened: it is within the bounds, or it is asked to have one line, of which a
// part is shown.
func isAdmitted(b *policy.ReadBounds, w files.Wanted) bool {
	if w.Request.Length != nil && min(*w.Request.Length, w.Lines-w.First+1) == 1 {
		return true
	}
	lines := linesOf(w)
	return !w.Cut && withoutTokens(b).Lines(lines) == lines && !b.Exceeds(shownLines(b, lines))
}

// linesOf returns the lines of a view without its head.
func linesOf(w files.Wanted) string {
	if first, rest, ok := strings.Cut(w.Text, "\n"); ok && strings.HasPrefix(first, "[") {
		return rest
	}
	return w.Text
}

// shownLines returns lines of a view as a call with include_content may show them.
func shownLines(b *policy.ReadBounds, lines string) string {
	lines = policy.CutNumbered(lines, b.MaxLineChars)
	if parts := strings.SplitAfterN(lines, "\n", b.MaxLines+1); len(parts) > b.MaxLines {
		lines = strings.TrimSuffix(strings.Join(parts[:b.MaxLines], ""), "\n")
	}
	return lines
}

// withoutTokens returns the bounds without those on tokens and lines.
func withoutTokens(b *policy.ReadBounds) *policy.ReadBounds {
	return &policy.ReadBounds{MaxLines: math.MaxInt32, MaxBytes: b.MaxBytes}
}

// again returns the request for a view.
func again(w files.Wanted) nextRequest {
	r := nextRequest{FileName: w.Name, Length: w.Request.Length}
	if w.Request.Offset != nil {
		r.Line = *w.Request.Offset + 1
	}
	return r
}

// partOf names calls that show a part of a view above the bounds: the place of a text, and the first lines that fit or,
// if the first line alone does not, its beginning.
func partOf(b *policy.ReadBounds, has recall.Toolset, w files.Wanted) string {
	find := has.Hint("grep_files", invocation("grep_files", argument{"pattern", "…", nil},
		argument{"include", w.Name, nil}))
	if find == "" {
		find = has.Hint("search_memory", `search_memory(query="…", kinds=["file"])`)
	}
	read := func(line int, length *int) string {
		return openCall(nextRequest{FileName: w.Name, Line: line, Length: length}, false)
	}
	few := withoutTokens(b).Lines(wholeLines(linesOf(w), gateChars(b)-headChars))
	fits := b.Lines(shownLines(b, few))
	if last, ok := lastNumber(fits); ok && last >= w.First {
		text := ""
		if find != "" {
			text = "\nTo find the place, call: " + find
		}
		return text + "\nTo read a part, call: " + read(w.First, new(last-w.First+1))
	}
	text := fmt.Sprintf(" Line %d alone has more.", w.First)
	if find != "" {
		text += "\nTo see what stands around a text in it, call: " + find
	}
	text += "\nTo see its beginning, call: " + read(w.First, new(1))
	if w.First < w.Lines {
		text += "\nTo read what follows it, call: " + read(w.First+1, nil)
	}
	return text
}

// withoutOpening adds to the error of a call for several files that none was opened.
func withoutOpening(err error, requests []files.OpenRequest) error {
	if len(requests) < 2 || !refused(err) || strings.Contains(err.Error(), "was not opened") {
		return err
	}
	return db.Invalid("%s No file was opened.", strings.TrimSuffix(err.Error(), ".")+".")
}
