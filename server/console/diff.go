package console

import (
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// newlines turns the line ends of a form's text, CR LF, into those of a memory, LF.
var newlines = strings.NewReplacer("\r\n", "\n")

// diffLines parses a unified diff.
func diffLines(diff string) (list []diffLine) {
	_, changes, differs := strings.Cut(diff, "@@") // skips the names of the compared texts
	if !differs {
		return nil
	}
	for line := range strings.SplitSeq(strings.TrimSuffix("@@"+changes, "\n"), "\n") {
		class := ""
		switch {
		case strings.HasPrefix(line, "@@"):
			class = "at"
		case strings.HasPrefix(line, "+"):
			class = "added"
		case strings.HasPrefix(line, "-"):
			class = "removed"
		}
		list = append(list, diffLine{class, line})
	}
	return list
}

// compare returns how lines differ from earlier ones.
func compare(before, now []string) ([]diffLine, error) {
	diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: ended(before), B: ended(now), Context: 3})
	return diffLines(diff), err
}

// ended returns lines with a newline after each.
func ended(lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = line + "\n"
	}
	return all
}
