package file

import (
	"regexp"
	"slices"
	"strings"
)

// errorText matches what may be a message of an error, or the name of a topic, if it has only a few words.
var errorText = regexp.MustCompile(`(?i)^\W*(?:panic|fatal|fatal error|error):\s|\b[a-z]\w*(?:error|exception)\b:\s|` +
	`\bexit (?:code|status) [1-9]|\bSQLSTATE\b|\bsegmentation fault\b`)

// errorBeginning matches the beginning of a message of an error. Alone it may be the name of a topic.
var errorBeginning = regexp.MustCompile(`(?i:\b(?:panic|fatal error|unhandled \w+|uncaught \w+|caused by):)|` +
	`\b[A-Z][\w.$]*(?:Error|Exception)(?: \[\w+\])?:|(?i:(?::\s*error(?: \w+\d)?|\berror\[\w+\]):)`)

// errorOutput matches what only the output of a program has: lines of stack traces and of dumps of goroutines, and
// messages of languages, shells and databases.
var errorOutput = regexp.MustCompile(strings.Join([]string{
	`\bgoroutine \d+ \[`, `\.go:\d+ \+0x[0-9a-f]`, `\bthread '[^']*' panicked at\b`, `\*\* \(\w+(?:Error|Exception)\)`,
	`(?i:\btraceback \(most recent|\bstack trace:\s*#)`, `\bstack traceback:`, `\bException in thread "`,
	`\bFile "[^"]+", line \d+`, `(?:^|\s)at \S+ ?\(.*:\d+\)`, `(?:^|\s)at \S+:\d+:\d+\b`, `(?:^|\s)at .* in \S+:line \d+`,
	`(?:^|\s)#\d+ +(?:0x[0-9a-f]+|\S+\(\d+\))`, `\.rb:\d+:in `, `\bterminate called after throwing\b`,
	`\b(?i:core dumped)\b`, `\bAddressSanitizer: `, `\bnpm ERR! `, `\bORA-\d{5}: `, `\bSQLSTATE[\[ ]?[0-9A-Z]{5}`,
	`:\s*(?i:command not found|no such file or directory|permission denied)\b`, `\bE[A-Z]{3,12}: [a-z]`,
	`\bERROR \d{4} \(`, `\[(?:ERROR|FATAL|CRITICAL)\]\s+\S`, `\blevel=(?:error|fatal)\b`,
}, "|"))

// leading are words that lead from the name of a topic to a file.
var leading = setOf("see in at under also there refer to read or how what do it they mean means")

// isErrorOutput reports whether a text has a message of an error, or a line of what is printed with one. A name that
// only a pointer follows is none, such as "panic: see".
func isErrorOutput(text string) bool {
	if errorOutput.MatchString(text) {
		return true
	}
	at := errorBeginning.FindStringIndex(text)
	return at != nil && slices.ContainsFunc(anyWord.FindAllString(strings.ToLower(text[at[1]:]), -1),
		func(w string) bool { return !leading[w] })
}
