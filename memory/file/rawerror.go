package file

import (
	"regexp"
	"slices"
	"strings"
)

// errorText matches what may be an error message. If there are only a few words, it may also be the name of a topic.
var errorText = regexp.MustCompile(`(?i)^\W*(?:panic|fatal|fatal error|error):\s|\b[a-z]\w*(?:error|exception)\b:\s|` +
	`\bexit (?:code|status) [1-9]|\bSQLSTATE\b|\bsegmentation fault\b`)

// errorBeginning matches the beginning of an error message. Alone, it may be the name of a topic.
var errorBeginning = regexp.MustCompile(`(?i:\b(?:panic|fatal error|unhandled \w+|uncaught \w+|caused by):)|` +
	`\b[A-Z][\w.$]*(?:Error|Exception)(?: \[\w+\])?:|(?i:(?::\s*error(?: \w+\d)?|\berror\[\w+\]):)`)

// errorOutput matches what only a program prints: lines of stack traces and goroutine dumps, and messages of languages,
// shells and databases.
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

// isErrorOutput reports whether a text has an error message or a line that programs print with one. A topic's name
// followed only by a pointer, such as "panic: see", does not count.
func isErrorOutput(text string) bool {
	if errorOutput.MatchString(text) {
		return true
	}
	match := errorBeginning.FindStringIndex(text)
	return match != nil && slices.ContainsFunc(anyWord.FindAllString(strings.ToLower(text[match[1]:]), -1),
		func(w string) bool { return !leading[w] })
}
