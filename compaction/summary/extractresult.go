package summary

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// addResult adds a tool's error: the first line about an error or, if the call failed without one, the first line.
// Other lines are added as findings.
func (x *extraction) addResult(m recall.Message, p recall.Part, tool string) {
	text, failed := resultText(p), p.Failed()
	failure := strings.TrimSpace(failureLine(text, failed))
	place := placeOf(failure, text)
	if failure != "" {
		x.items[failures] = append(x.items[failures],
			item{seq: m.Seq, failed: failed,
				text: fmt.Sprintf("[%d] %s: %s%s", m.Seq, tool, prose.OneLine(failure, sentenceChars), place)})
	}
	all := statements(text)
	if failure != "" {
		all = lines(text)
	}
	values := 0
	for _, line := range all {
		if givesValues(line) && !isSource(line) {
			values++
		}
	}
	few := values <= fewLines // an answer to a question rather than a file
	for looked, line := range all {
		if looked >= x.outputLines && !failed {
			return
		}
		if line == failure {
			failure = ""
			continue
		}
		if place != "" && isFrame(line) {
			continue
		}
		line = prose.OneLine(line, sentenceChars)
		x.add(findings, item{seq: m.Seq, output: true, text: fmt.Sprintf("[%d] result of %s: %s", m.Seq, tool, line)},
			prose.SentenceOf(line), trustOfLine(line, few, len(all) < fewLines))
	}
}

// trustOfLine returns the weight of a result's line. In a result with few values, they count for more. In one with few
// lines, so do lines with a digit, unless they are of a program's source.
func trustOfLine(line string, fewValues, few bool) float64 {
	switch {
	case isSource(line):
		return sourceTrust
	case fewValues && givesValues(line):
		return valueTrust
	case few && strings.ContainsAny(line, "0123456789"):
		return answerTrust
	}
	return outputTrust
}

// fewLines is how many lines or values a result has at most that count for more.
const fewLines = 12

// resultText returns the part of a result that is read: its beginning, and if the call failed also its end, because
// that says why.
func resultText(p recall.Part) string {
	text := p.Text
	if p.Clip != nil && p.Clip.Shown <= len(text) {
		text = text[:p.Clip.Shown]
	}
	text = strings.Join(slices.Concat(p.Stderr, []string{text}), "\n")
	if !p.Failed() || len(text) <= 2*prose.ClampChars {
		return beginning(text, prose.ClampChars)
	}
	_, end, _ := strings.Cut(text[len(text)-prose.ClampChars/2:], "\n") // without the rest of a cut line
	return beginning(text, prose.ClampChars/2) + "\n" + prose.Unmarked(end)
}

// beginning returns the first characters of a text, without Loci's markup.
func beginning(text string, chars int) string {
	text = prose.Unmarked(tokens.PrefixChars(text, 2*chars)) // markup that is cut at the end does not matter
	return tokens.PrefixChars(text, chars)
}

// failureLine returns the first line about an error. If there is none and the call failed, it returns the first line.
// Where the call did not fail, lines of source code are none: they speak of errors that did not happen.
func failureLine(text string, failed bool) (line string) {
	if !failed && !SaysError(text) {
		return ""
	}
	for l := range strings.Lines(text) {
		switch {
		case strings.TrimSpace(l) == "":
		case strings.HasPrefix(l, traceback):
			return cmp.Or(exceptionLine(text[strings.Index(text, l)+len(l):]), l)
		case SaysError(l) && (failed || !isSource(l)):
			return l
		case line == "" && failed:
			line = l
		}
	}
	return line
}

// traceback begins what a Python program writes when it fails. Its last line says why.
const traceback = "Traceback (most recent call last):"

// exceptionLine returns the first line that is not indented.
func exceptionLine(text string) string {
	for l := range strings.Lines(text) {
		if strings.TrimSpace(l) != "" && strings.TrimLeft(l, " \t") == l {
			return l
		}
	}
	return ""
}

// stackFrame matches where in a source file a line of a stack trace is, and onlyFrame the end of such a line that says
// no more. sourceOfOthers matches files of a language itself,
// or of libraries.
var (
	stackFrame     = regexp.MustCompile(`File "[^"]+", line \d+|[\w./\\@~-]*\w\.\w{1,6}:\d+`)
	onlyFrame      = regexp.MustCompile(`(?:File "[^"]+", line \d+(?:, in \S+)?|\w\.\w+:\d+(?::\d+)?\)?(?: \+0x\w+)?)$`)
	sourceOfOthers = regexp.MustCompile(`node_modules|node:|site-packages|/usr/(?:local/)?(?:lib|go)|/runtime/|<frozen`)
)

// isFrame reports whether a line of a stack trace only says where it is.
func isFrame(line string) bool {
	return strings.HasPrefix(line, traceback) || strings.HasPrefix(line, "goroutine ") || onlyFrame.MatchString(line)
}

// placeOf returns where an error happened, from the stack trace around its line: the first place behind it, or in a
// traceback the last one before. It is empty if the line says so itself, or if there is no stack trace.
func placeOf(failure, text string) string {
	before, after, found := strings.Cut(text, failure)
	if !found || failure == "" || stackFrame.MatchString(failure) {
		return ""
	}
	place := ""
	if i := strings.LastIndex(before, traceback); i >= 0 {
		for _, found := range stackFrame.FindAllString(before[i:], -1) {
			if !sourceOfOthers.MatchString(found) {
				place = found
			}
		}
	}
	for l := range strings.Lines(after) {
		if place != "" {
			break
		}
		if strings.TrimLeft(l, " \t") != l && !sourceOfOthers.MatchString(l) { // lines of a stack are indented
			place = stackFrame.FindString(l)
		}
	}
	if place == "" {
		return ""
	}
	return " (" + prose.OneLine(place, argumentChars) + ")"
}

// errorSigns are texts that mark a line of output as about an error.
var errorSigns = []string{"ERROR", "ERR!", "FATAL", "FAIL", "Error:", "error:", "panic:", "Traceback", "Exception",
	"denied", "not found", "timed out", "refused", "exhausted", "exceeded", "expired", "unable to"}

// SaysError reports whether a line of output is about an error. It is called for each line of each result, and a
// regular expression would take ten times as long.
func SaysError(line string) bool {
	return slices.ContainsFunc(errorSigns, func(sign string) bool { return strings.Contains(line, sign) }) ||
		recall.NamesError(line)
}

// sourceSigns are what lines of source code begin with, end with, and contain.
var (
	sourceBeginnings = []string{"//", "/*", "* ", "# ", "func ", "def ", "return ", "if ", "} else", "elif ", "case ",
		"switch ", "raise ", "throw ", "except ", "} catch"}
	sourceEnds  = []string{"{", "}", ";", "(", "[", "},", "),", "})", "`"}
	sourceParts = []string{" := ", " // ", "`json:", "(err", "t.Error", "t.Fatal", "errors.New(", "Error(\"", "Errorf(\"",
		"Exception(\""}
)

// isSource reports whether a line looks like one of a program's source rather than one that a program wrote. The
// numbers that readers of files put before lines do not matter.
func isSource(line string) bool {
	line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "0123456789:|→\t "))
	begins := func(sign string) bool { return strings.HasPrefix(line, sign) }
	ends := func(sign string) bool { return strings.HasSuffix(line, sign) }
	contains := func(sign string) bool { return strings.Contains(line, sign) }
	isJSON := begins("{") && ends("}")
	return slices.ContainsFunc(sourceBeginnings, begins) || !isJSON && slices.ContainsFunc(sourceEnds, ends) ||
		slices.ContainsFunc(sourceParts, contains)
}

// sureSigns are those of a line that says itself that something failed.
var sureSigns = []string{"ERROR", "ERR!", "FATAL", "FAIL", "Error:", "error:", "panic:", "Traceback", "Exception",
	`"error"`, "exit code", "exit status"}

// isSure reports whether a line about an error says itself that something failed. Others may only speak of it.
func isSure(line string) bool {
	return placed.MatchString(line) || recall.NamesError(line) ||
		slices.ContainsFunc(sureSigns, func(sign string) bool { return strings.Contains(line, sign) })
}

// placed matches what a compiler or a test says of a line in a file.
var placed = regexp.MustCompile(`\w\.\w+:\d+(:\d+)?: `)

// failureText returns a failed result from its line about an error on.
func failureText(p recall.Part) string {
	text := resultText(p)
	if line := failureLine(text, true); line != "" {
		return text[strings.Index(text, line):]
	}
	return text
}
