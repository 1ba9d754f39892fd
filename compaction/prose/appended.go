package prose

import "regexp"

// The headings of what a format appends, and the tags of its lists of files.
const (
	FailuresHeading = "## Tool failures"
	RecentHeading   = "## Recent turns, word for word"
	NamedHeading    = "## Files that were read and are too long to be shown again"
	ReadTag         = "read-files"
	ModifiedTag     = "modified-files"
)

// Appended matches what formats append, which no extraction reads.
var Appended = regexp.MustCompile(`(?s)\n\n(?:<` + ReadTag + `>|<` + ModifiedTag + `>|` + FailuresHeading + `\n|` +
	RecentHeading + `\n|` + UserHeading + `\n|` + NamedHeading + `\n).*$`)
