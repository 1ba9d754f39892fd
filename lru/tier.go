package lru

// Tier bounds what an agent has open, by the size of its context window.
type Tier struct {
	MaxFiles  int // files open at once
	ViewChars int // characters shown of each
}

// TierFor returns the tier of a context window of so many tokens; 0 or less is a window of unknown size. The bounds are the windows that
// models have; Letta's are 8,000, 32,000 and 128,000, and for an unknown window it shows 50,000 characters.
func TierFor(windowTokens int) Tier {
	switch {
	case windowTokens <= 0:
		return Tier{MaxFiles: 5, ViewChars: 15_000}
	case windowTokens <= 8_192:
		return Tier{MaxFiles: 3, ViewChars: 5_000}
	case windowTokens <= 32_768:
		return Tier{MaxFiles: 5, ViewChars: 15_000}
	case windowTokens <= 131_072:
		return Tier{MaxFiles: 10, ViewChars: 25_000}
	case windowTokens <= 200_000:
		return Tier{MaxFiles: 10, ViewChars: 40_000}
	default:
		return Tier{MaxFiles: 15, ViewChars: 40_000}
	}
}
