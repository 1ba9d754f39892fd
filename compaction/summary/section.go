package summary

import "github.com/loci-memory/loci/compaction/prose"

// section is a part of an extracted summary.
type section int

const (
	earlier section = iota // sentences of the previous summary, if a model wrote it
	requests
	told // by the user: rules, wishes, dates, facts
	decisions
	findings // of the assistant, and in the results of tools
	open
	failures
	named
	calls
	state
	sectionCount
)

// titles are the first lines of the sections.
var titles = [sectionCount]string{"Earlier:", "Requests, word for word:", "Told by the user:", "Decisions:",
	"Findings and results:", "Open:", "Errors:", "Named:", "Tool calls:", "Last state:"}

// trust is how much a sentence of a section weighs: those of the sections that have none are not compared.
var trust = [sectionCount]float64{earlier: 0.9, told: 1, decisions: 1, findings: 0.8, open: 1}

// Limits of an extraction.
const (
	sentenceChars = 400
	argumentChars = 100
	stateChars    = 600
	maxCallLines  = 40
	// of a line that is compared; shorter ones say little alone, but for what the user is, wants or demands
	leastWordsOfLine = 2
	outputLines      = 40    // of a tool's result that are looked at,
	leastOutputLines = 5     // and of each of many,
	allOutputLines   = 4_000 // which are about as many of all together
	outputTrust      = 0.4   // of a line of a result
)

// saysMuchInFewWords reports whether a sentence may matter although it has hardly any words: if it says what the user
// is, wants or demands, or if someone said it (no result of a tool) and it has an amount.
func saysMuchInFewWords(s prose.Sentence, in section, weight float64) bool {
	return in == told && s.Is(prose.Obliging|prose.Wishing|prose.Owning) || weight > outputTrust &&
		prose.Quantity.MatchString(s.Text)
}

// sectionIn returns the section of a sentence that belongs to one unless its words say otherwise.
func sectionIn(s prose.Sentence, in section) section {
	switch {
	case s.Is(prose.Pending):
		return open
	case s.Is(prose.Deciding):
		return decisions
	}
	return in
}
