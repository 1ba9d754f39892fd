package tool

import (
	"strconv"
	"strings"
)

// nextRequest is a request for a file, in a call that a result suggests.
type nextRequest struct {
	FileName string `json:"file_name"`
	Line     int    `json:"line,omitempty"`
	Length   *int   `json:"length,omitempty"`
	Char     int    `json:"char,omitempty"`
}

func openCall(r nextRequest, content bool) string { return openCalls([]nextRequest{r}, content) }

func openCalls(requests []nextRequest, content bool) string {
	return invocation("open_files",
		argument{"file_requests", requests, nil},
		argument{"include_content", content, false})
}

// wholeLines returns the first lines of s that have at most chars characters together.
func wholeLines(s string, chars int) string {
	kept := clip(s, chars)
	if kept == s || s[len(kept)] == '\n' {
		return kept
	}
	return kept[:max(strings.LastIndexByte(kept, '\n'), 0)]
}

// lastNumber returns the number of the last numbered line in a content.
func lastNumber(content string) (int, bool) {
	for content != "" {
		start := strings.LastIndexByte(content, '\n') + 1
		word, _, found := strings.Cut(content[start:], ": ")
		if n, err := strconv.Atoi(word); found && err == nil {
			return n, true
		}
		content = content[:max(start-1, 0)]
	}
	return 0, false
}
