package summary

import (
	"fmt"
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
	if failure != "" {
		x.items[failures] = append(x.items[failures],
			item{seq: m.Seq, text: fmt.Sprintf("[%d] %s: %s", m.Seq, tool, prose.OneLine(failure, sentenceChars))})
	}
	looked := 0
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
		line = prose.OneLine(line, sentenceChars)
		x.add(findings, item{seq: m.Seq, text: fmt.Sprintf("[%d] result of %s: %s", m.Seq, tool, line)},
			prose.SentenceOf(line), outputTrust)
	}
}

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
func failureLine(text string, failed bool) (line string) {
	if !failed && !SaysError(text) {
		return ""
	}
	for l := range strings.Lines(text) {
		switch {
		case strings.TrimSpace(l) == "":
		case SaysError(l):
			return l
		case line == "" && failed:
			line = l
		}
	}
	return line
}

// errorSigns are texts that mark a line of output as about an error.
var errorSigns = []string{"ERROR", "FATAL", "FAIL", "Error:", "error:", "panic:", "Traceback", "Exception", "denied",
	"not found", "timed out", "refused", "exhausted", "exceeded", "expired", "unable to"}

// SaysError reports whether a line of output is about an error. It is called for each line of each result, and a
// regular expression would take ten times as long.
func SaysError(line string) bool {
	return slices.ContainsFunc(errorSigns, func(sign string) bool { return strings.Contains(line, sign) })
}

// failureText returns a failed result from its line about an error on.
func failureText(p recall.Part) string {
	text := resultText(p)
	if line := failureLine(text, true); line != "" {
		return text[strings.Index(text, line):]
	}
	return text
}
