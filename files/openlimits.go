package files

import (
	"cmp"
	"math"
)

// Limits say how much an agent may have open. They come from its context window, or from its operator.
type Limits struct {
	MaxOpen      int // number of open files
	ViewChars    int // characters of one open file's section in the prompt
	WindowTokens int // context window of the agent's model; 0: unknown
	OpenChars    int // characters of all open files together in a prompt; 0: their share of the window

	NoStubs   bool // a view may be shortened to nothing: where a character takes several tokens, stubs are too long
	OpensNone bool // no file opens by itself, unless an attachment says so
}

// LimitsFor returns the limits for a context window. 0 tokens or less means an unknown window. The bounds between tiers
// are windows that models have. Letta's bounds are 8,000, 32,000 and 128,000, and for an unknown window it shows 50,000
// characters.
func LimitsFor(windowTokens int) Limits {
	tier := Limits{MaxOpen: 15, ViewChars: 40_000, WindowTokens: windowTokens}
	switch {
	case windowTokens <= 0:
		tier.MaxOpen, tier.ViewChars = 5, 15_000
	case windowTokens <= 8_192:
		tier.MaxOpen, tier.ViewChars = 3, 5_000
	case windowTokens <= 32_768:
		tier.MaxOpen, tier.ViewChars = 5, 15_000
	case windowTokens <= 131_072:
		tier.MaxOpen, tier.ViewChars = 10, 25_000
	case windowTokens <= 200_000:
		tier.MaxOpen, tier.ViewChars = 10, 40_000
	}
	return tier
}

const (
	openShare     = 0.6 // share of the window for all open files
	closedShare   = 0.1 // share of the window for the names of closed files
	maxClosed     = 20  // number of closed files that a prompt names
	closedChars   = 60  // approximate size of a line that names one
	automatic     = 0.1 // share of the window for files that opened by themselves
	assumedWindow = 32_768
	charsPerToken = 4   // estimate that turns a window into characters
	stubChars     = 500 // least characters of a shortened view
	overheadChars = 150 // approximate size of a prompt's markup around a file
	markupTokens  = 60  // most tokens of that markup, with the file's name
	stubTokens    = markupTokens + stubChars/charsPerToken
)

// automaticTokens returns how many tokens of a prompt the files that opened by themselves may take together.
func (l Limits) automaticTokens() int {
	return int(float64(cmp.Or(max(l.WindowTokens, 0), assumedWindow)) * automatic)
}

// openBudget returns how many characters n open files may show together, and how many a shortened one keeps at least.
// bounded is false if there is no common limit.
func (l Limits) openBudget(n int) (budget, stub int, bounded bool) {
	budget, stub = math.MaxInt, stubChars
	if l.WindowTokens > 0 {
		budget = max(int(float64(l.WindowTokens)*charsPerToken*openShare)-n*overheadChars, 0)
		stub = min(stubChars, budget/n)
	}
	if l.OpenChars > 0 {
		budget = min(budget, l.OpenChars)
		if l.WindowTokens > 0 {
			stub = min(stub, l.WindowTokens/4/n) // in some texts each character is a token
		}
		if l.NoStubs {
			stub = min(stub, l.OpenChars/n)
		}
	}
	return budget, stub, budget < math.MaxInt
}

// closedFiles returns how many closed files a prompt names.
func (l Limits) closedFiles() int {
	if l.WindowTokens == 0 {
		return maxClosed
	}
	return min(maxClosed, int(float64(l.WindowTokens)*charsPerToken*closedShare)/closedChars)
}
