package summary

import (
	"strings"

	"github.com/loci-memory/loci/compaction/prose"
)

// section is a part of an extracted summary.
type section int

const (
	earlier section = iota // sentences of the previous summary, if a model wrote it
	requests
	told // facts from the user: rules, wishes, dates
	decisions
	findings // findings of the assistant, and in tool results
	open
	failures
	named
	calls
	state
	next // step, if a format asks for it
	sectionCount
)

// titles are the first lines of the sections.
var titles = [sectionCount]string{"Earlier:", "Requests, word for word:", "Told by the user:", "Decisions:",
	"Findings and results:", "Open:", "Errors:", "Named:", "Tool calls:", "Last state:", "Next step:"}

// trust is the weight of a section's sentences. Sentences of sections without a weight are not compared.
var trust = [sectionCount]float64{earlier: 0.9, told: 1, decisions: 1, findings: 0.8, open: 1}

// Limits of an extraction.
const (
	sentenceChars = 400
	argumentChars = 100
	stateChars    = 600
	maxCallLines  = 40
	// These bound the words of a compared line. Shorter lines say little alone, unless they say what the user is, wants or
	// demands.
	leastWordsOfLine = 2
	outputLines      = 40    // lines that are read of one tool result,
	leastOutputLines = 5     // at least of each if there are many,
	allOutputLines   = 4_000 // and of all together
	outputTrust      = 0.4   // weight of a line in a result
	sourceTrust      = 0.1   // that of a line of a program's source
	answerTrust      = 1.4   // that of a line with a digit in a short result
	valueTrust       = 1.5   // that of a named value in a short one,
	valueCue         = 1.5   // which counts as a sign, too
	sameShapes       = 2     // lines of results with the same shape that count fully,
	valueShapes      = 8     // if they give names values
	bareTrust        = 0.1   // that of a request that only names what is next to be looked at
	statementCue     = 1     // what a statement of the user counts more
	leastStatement   = 3     // words of such a statement
	describingCue    = 1.5   // what "must" and "only" count less for where nobody is told to do anything
)

// saysMuchInFewWords reports whether a sentence may matter although it has hardly any words: it says what the user is,
// wants or demands; or it has an amount, and is not from a tool result.
func saysMuchInFewWords(s prose.Sentence, in section, weight float64) bool {
	if in == told && strings.ContainsAny(s.Text, "0123456789") && s.Opening&prose.Asking == 0 { // "my room is 8"
		return true
	}
	return in == told && (s.IsUnread() || s.Is(prose.Obliging|prose.Wishing|prose.Owning)) || weight == valueTrust ||
		weight > outputTrust && prose.Quantity.MatchString(s.Text)
}

// sectionIn returns the section of a sentence: the section in, unless the words of the sentence say otherwise.
func sectionIn(s prose.Sentence, in section) section {
	switch {
	case s.Is(prose.Pending):
		return open
	case s.Is(prose.Deciding):
		return decisions
	}
	return in
}
