package prose

import "regexp"

// Headings of the parts that a format appends, and tags of its lists of files.
const (
	FailuresHeading = "## Tool failures"
	RecentHeading   = "## Recent turns, word for word"
	NamedHeading    = "## Files that were read and are not shown again"
	ReadTag         = "read-files"
	ModifiedTag     = "modified-files"
)

// Appended matches the parts that formats append. Extractions do not read them.
var Appended = regexp.MustCompile(`(?s)\n\n(?:<` + ReadTag + `>|<` + ModifiedTag + `>|` + FailuresHeading + `\n|` +
	RecentHeading + `\n|` + UserHeading + `\n|` + NamedHeading + `\n).*$`)
