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
	if whole := onOneLine(text); whole != "" && failure == "" {
		text = whole
	}
	looked, few := 0, strings.Count(text, "\n") < fewLines // an answer to a question rather than a file
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if looked++; looked > x.outputLines && !failed {
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
			prose.SentenceOf(line), trustOfLine(line, few))
	}
}

// value matches what gives a name a value with a digit.
var value = regexp.MustCompile(`^"?[\pL_][\pL\pM\w. ()/%-]{1,40}"?\s*[:=：]\s*"?[^\s"]*\d[^"]{0,40}"?,?$`)

// record matches a line with a JSON object that has a digit.
var record = regexp.MustCompile(`^\{"[^{}]{0,120}\d[^{}]{0,120}\},?$`)

// trustOfLine returns the weight of a result's line. In a result with few lines, values count for more, and so do lines
// with a digit, unless they are of a program's source.
func trustOfLine(line string, few bool) float64 {
	switch {
	case isSource(line):
		return sourceTrust
	case !few:
		return outputTrust
	case givesValues(line):
		return valueTrust
	case strings.ContainsAny(line, "0123456789"):
		return answerTrust
	}
	return outputTrust
}

// lineJoint stands between the lines of a short result on one line.
const lineJoint = "; "

// field matches what gives a name a value.
var field = regexp.MustCompile(`^"?[\pL_][\pL\pM\w. ()/%-]{1,40}"?\s*[:=：]\s*\S`)

// columns matches what parts the columns of a table.
var columns = regexp.MustCompile(`\t| {2,}| \| `)

// onOneLine returns a short result on one line if its lines are of the same thing: fields, perhaps under a title, or
// rows of a table. Otherwise it is empty.
func onOneLine(text string) string {
	if len(text) > shortResult {
		return ""
	}
	var lines []string
	fields, cells := 0, map[int]bool{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if field.MatchString(line) && !placed.MatchString(line) {
			fields++
		}
		cells[len(columns.Split(line, -1))] = true
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	isTable := len(cells) == 1 && !cells[1]
	if len(lines) < 2 || len(lines) > shortLines || slices.ContainsFunc(lines, isSource) ||
		!isTable && (fields < 2 || fields < len(lines)-1) {
		return ""
	}
	return strings.Join(lines, lineJoint)
}

// shortResult and shortLines are how many bytes and lines a result has at most that stands on one line.
const (
	shortResult = 240
	shortLines  = 6
)

// givesValues reports whether a line, or one of the lines that it joins, gives a name a value with a digit.
func givesValues(line string) bool {
	return record.MatchString(line) || slices.ContainsFunc(strings.Split(line, lineJoint), value.MatchString)
}

// fewLines is how many lines a result has at most whose values count for more.
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
