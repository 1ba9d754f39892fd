package compaction

import "regexp"

// The headings of what a format appends, and the tags of its lists of files.
const (
	failuresHeading = "## Tool failures"
	recentHeading   = "## Recent turns, word for word"
	namedHeading    = "## Files that were read and are too long to be shown again"
	readTag         = "read-files"
	modifiedTag     = "modified-files"
)

// appended matches what formats append, which no extraction reads.
var appended = regexp.MustCompile(`(?s)\n\n(?:<` + readTag + `>|<` + modifiedTag + `>|` + failuresHeading + `\n|` +
	recentHeading + `\n|` + userHeading + `\n|` + namedHeading + `\n).*$`)
