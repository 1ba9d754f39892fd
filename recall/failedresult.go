package recall

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Failed reports whether a tool's result says that the call failed. Few APIs have a field for that, so it is also read
// from the text: how it begins, a status of a process, a traceback, or the fields of a JSON object.
func (p Part) Failed() bool {
	return p.IsError || p.Type == ToolReturn && p.SaysFailed()
}

// SaysFailed reports whether a text says that a call failed, as Failed reads it.
func (p Part) SaysFailed() bool {
	text := strings.TrimSpace(p.Text)
	if strings.HasPrefix(text, "{") {
		return len(text) <= maxStatusBytes && objectFails([]byte(text))
	}
	if before, _, found := cutColon(text[:min(len(text), maxSignBytes)]); found && isErrorWord(
		strings.TrimSpace(errorCode.ReplaceAllString(before, ""))) {
		return true
	}
	begins := strings.ToLower(text[:min(len(text), maxSignBytes)])
	if slices.ContainsFunc(failureBeginnings, func(sign string) bool { return strings.HasPrefix(begins, sign) }) {
		return true
	}
	if statusLine.MatchString(text) || nodeTrace.MatchString(text[:min(len(text), maxTraceBytes)]) {
		return true
	}
	if exceptionLine.MatchString(firstLine(text)) || panicLine.MatchString(firstLine(text)) {
		return true
	}
	return failingStatus.MatchString(firstLine(text)) || failingStatus.MatchString(lastLine(text)) ||
		strings.Contains(text, traceback) && exceptionLine.MatchString(lastLine(text))
}

const (
	maxStatusBytes = 64 << 10 // a longer object is data
	maxSignBytes   = 40
	maxLineBytes   = 300
	maxTraceBytes  = 4000
	traceback      = "Traceback (most recent call last):"
)

// failureBeginnings are how results of failed calls begin, in lower case.
var failureBeginnings = []string{"error:", "error -", "error executing", "error calling", "error running",
	"error while ",
	"exception:", "fatal:", "fatal error", "panic:", "failed:", "failed to ", "command failed", "tool error", "[error]",
	"<error>", "<tool_use_error>", "traceback (most recent call last):", "permission denied", "syntaxerror:",
	"bash: ", "sh: ", "zsh: ", "exception in thread ", "unhandled exception", "uncaught ", "npm err!", "npm error",
	"command timed out",
	"request timed out", "timed out after", "http/1.1 4", "http/1.1 5", "http/2 4", "http/2 5"}

var (
	// failingStatus matches a line that gives the status of a process that failed.
	failingStatus = regexp.MustCompile(`(?i)^\W*((the )?(command|process|script|program)\b.{0,40}\b)?` +
		`(exit(ed)?( with)?( non-?zero)?( code| status)?|return ?code|exit_?code)\W*[:=]?\W*-?[1-9]\d{0,4}\W*$`)
	// panicLine matches how a Rust program, and one of Ruby, say that they failed.
	panicLine = regexp.MustCompile(`^thread '[^']*' panicked at |^\S+:\d+:in .*\(\w+(Error|Exception)\)$`)
	// statusLine matches a status of HTTP that is an error, and nodeTrace what a program of Node writes when it fails.
	statusLine = regexp.MustCompile(`^HTTP(?:/\d(?:\.\d)?)? [45]\d\d\b`)
	nodeTrace  = regexp.MustCompile(`^\S+:\d+\n(?s:.{0,900})\n(?:Uncaught )?\w*Error(?: \[\w+\])?: [^\n]*\n +at `)
	// exceptionLine matches the last line of a traceback, or the first of another stack trace.
	exceptionLine = regexp.MustCompile(`^[A-Za-z_][\w.]*(Error|Exception|Interrupt|Exit|Warning|Timeout)\b(:|$)`)
)

// firstLine returns the first line of a text, or its beginning.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text[:min(len(text), maxLineBytes)], "\n")
	return strings.TrimSpace(line)
}

// lastLine returns the last line of a text, or the end of it.
func lastLine(text string) string {
	text = text[max(len(text)-maxLineBytes, 0):]
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}

// objectFails reports whether a JSON object says that a call failed.
func objectFails(text []byte) bool {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return false
	}
	if e, ok := fields["error"]; ok && !slices.Contains([]string{"null", "false", `""`, "[]", "{}", "0"}, string(e)) {
		return true
	}
	for _, name := range []string{"exit_code", "exitCode", "returncode"} {
		var code float64
		if json.Unmarshal(fields[name], &code) == nil && code != 0 {
			return true
		}
	}
	var status string
	return json.Unmarshal(fields["status"], &status) == nil && slices.Contains(failedStatuses, strings.ToLower(status)) ||
		string(fields["is_error"]) == "true" || string(fields["isError"]) == "true" ||
		string(fields["success"]) == "false" || string(fields["ok"]) == "false"
}

// failedStatuses are values of a field "status", in lower case.
var failedStatuses = []string{"error", "failed", "failure"}

// errorWords are the words before a colon with which programs in many languages say that they failed, in lower case.
var errorWords = []string{"error", "fehler", "erreur", "errore", "erro", "fout", "błąd", "hata", "ошибка", "エラー", "错误",
	"錯誤", "오류", "에러", "ข้อผิดพลาด", "خطأ", "त्रुटि"}

// NamesError reports whether a text has a word for an error before a colon.
func NamesError(text string) bool {
	for {
		before, after, found := cutColon(text)
		if !found {
			return false
		}
		before = strings.TrimRightFunc(errorCode.ReplaceAllString(before, ""), unicode.IsSpace)
		if word := before[strings.LastIndexFunc(before, notInWord)+1:]; isErrorWord(word) {
			return true
		}
		text = after
	}
}

// errorCode matches the code behind a word for an error.
var errorCode = regexp.MustCompile(`\s[\w-]{0,8}\d[\w-]{0,12}$`)

// notInWord reports whether a character is no part of a word.
func notInWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsMark(r) }

func isErrorWord(word string) bool { return slices.Contains(errorWords, strings.ToLower(word)) }

// cutColon cuts a text around its first colon. before ends in a word, because spaces may stand before a colon.
func cutColon(text string) (before, after string, found bool) {
	i := strings.IndexAny(text, ":：")
	if i < 0 {
		return text, "", false
	}
	_, size := utf8.DecodeRuneInString(text[i:])
	return strings.TrimRightFunc(text[:i], unicode.IsSpace), text[i+size:], true
}
