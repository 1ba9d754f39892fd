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
	text := strings.TrimLeft(strings.TrimSpace(p.Text), emphasis)
	if strings.HasPrefix(text, "{") {
		return len(text) <= maxStatusBytes && objectFails([]byte(text))
	}
	first, last := firstLine(text), lastLine(text)
	return beginsWithError(text) || failingTag.MatchString(text) || failingHead(text) ||
		statusLine.MatchString(text) || nodeTrace.MatchString(text[:min(len(text), maxTraceBytes)]) ||
		exceptionLine.MatchString(first) || panicLine.MatchString(first) || compilerLine.MatchString(first) ||
		shellLine.MatchString(first) || shellLine.MatchString(last) || failedTests.MatchString(last) ||
		failingStatus.MatchString(first) || failingStatus.MatchString(last) ||
		strings.Contains(text, traceback) && exceptionLine.MatchString(last)
}

// beginsWithError reports whether a text begins as programs say that they failed.
func beginsWithError(text string) bool {
	begins := text[:min(len(text), maxSignBytes)]
	if before, after, found := cutColon(begins); found && strings.TrimSpace(after) != "0" && isErrorWord(
		strings.TrimRight(errorCode.ReplaceAllString(before, ""), emphasis)) {
		return true
	}
	begins = strings.ToLower(begins)
	starts := func(sign string) bool { return strings.HasPrefix(begins, sign) }
	return slices.ContainsFunc(failureBeginnings, starts) || failedCall.MatchString(begins) ||
		len(text) <= maxSentenceBytes && !strings.Contains(text, "\n\n") && slices.ContainsFunc(failedSentences, starts)
}

// failingHead reports whether a head of lines before a line "Output:" has the status of a process that failed.
func failingHead(text string) bool {
	head, _, found := strings.Cut(text[:min(len(text), maxLineBytes)], "\nOutput:\n")
	return found && slices.ContainsFunc(strings.Split(head, "\n"), failingStatus.MatchString)
}

// emphasis are characters around the word for an error: quotes, Markdown, and signs.
const emphasis = "\"'*_❌⚠🚫✗✘⛔\uFE0F "

const (
	maxStatusBytes = 64 << 10 // a longer object is data
	maxSignBytes   = 40
	maxLineBytes   = 300
	maxTraceBytes  = 4000

	maxSentenceBytes = 300 // a longer text is no sentence about a failure

	traceback = "Traceback (most recent call last):"
)

// failureBeginnings are how results of failed calls begin, in lower case.
var failureBeginnings = []string{"error -", "error\n", "error executing", "error calling", "error running",
	"error reading", "error writing", "error opening", "error fetching", "error loading", "error parsing",
	"error connecting", "error creating", "error processing", "error during", "error occurred", "error[",
	"error while ", "mcp error",
	"exception:", "fatal:", "fatal error", "panic:", "failed:", "failed to ", "command failed", "tool error", "[error]",
	"<error>", "<tool_use_error>", "traceback (most recent call last):", "permission denied", "syntaxerror:",
	"bash: ", "sh: ", "zsh: ", "exception in thread ", "unhandled exception", "uncaught ", "npm err!", "npm error",
	"command timed out",
	"request timed out", "timed out after", "http/1.1 4", "http/1.1 5", "http/2 4", "http/2 5", "--- fail: ",
	"build failed", "segmentation fault", "bus error", "access denied"}

// failedSentences are how a sentence begins that is the whole of a failed call's result, in lower case.
var failedSentences = []string{"file not found", "file does not exist", "no such file", "no such tool", "unknown tool",
	"unable to ", "could not ", "couldn't ", "cannot ", "can't ", "invalid argument", "invalid parameter",
	"invalid input", "not found:"}

var (
	// failingStatus matches a line that gives the status of a process that failed.
	failingStatus = regexp.MustCompile(`(?i)^\W*((the )?(command|process|script|program)\b.{0,40}\b)?` +
		`(exit(ed)?( with)?( non-?zero)?( code| status( code)?)?|return ?code|exit_?code)\W*[:=]?\W*-?[1-9]\d{0,4}\W*$`)
	// failingTag matches such a status in a tag, at the beginning or the end.
	failingTag = regexp.MustCompile(
		`(?i)(?:^<(?:return|exit)_?code>|<(?:return|exit)_?code>)\s*-?[1-9]\d{0,4}\s*</\w+>(?:$|\s*<output>)`)
	// failedCall matches a sentence about a call that failed.
	failedCall = regexp.MustCompile(`^(the )?(tool|function)( call| execution| use)? failed\b`)
	// shellLine matches what shells and their programs write last when they fail.
	shellLine = regexp.MustCompile(
		`^(/\S+/)?(ba|da|z)?sh: .*: (command )?not found$|^curl: \(\d+\) |^make(\[\d+\])?: \*\*\* |` +
			`^(cat|ls|cp|mv|rm|mkdir|rmdir|touch|cd|chmod|chown|head|tail|sed|awk|grep|find|tar|stat|du|ln|source|ssh|scp|` +
			`diff|python\d?|node|docker|kubectl|psql|wget): .*(No such file or directory|Permission denied|[Nn]ot found|` +
			`Is a directory|Not a directory|Operation not permitted|Connection refused|No space left on device)$|` +
			`Segmentation fault( \(core dumped\))?\b`)
	// compilerLine matches the first error of a compiler.
	compilerLine = regexp.MustCompile(`^\S+(:\d+:\d+:|:\d+:|\(\d+,\d+\):) (fatal )?error( TS\d+)?: `)
	// failedTests matches the last line of a run of tests.
	failedTests = regexp.MustCompile(`^(=+ )?[1-9]\d* (failed|errors?)\b.* in [\d.]+s|^FAIL(\t.*)?$|^BUILD FAILED\b`)
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
	if has(fields["error"]) || has(fields["errors"]) && !has(fields["data"]) || exitFails(fields) {
		return true
	}
	var metadata map[string]json.RawMessage
	if json.Unmarshal(fields["metadata"], &metadata) == nil && exitFails(metadata) {
		return true
	}
	for _, name := range []string{"status", "statusCode", "status_code"} {
		var code int
		if json.Unmarshal(fields[name], &code) == nil && code >= 400 && code < 600 {
			return true
		}
	}
	var status string
	return json.Unmarshal(fields["status"], &status) == nil && slices.Contains(failedStatuses, strings.ToLower(status)) ||
		string(fields["is_error"]) == "true" || string(fields["isError"]) == "true" ||
		string(fields["success"]) == "false" || string(fields["ok"]) == "false"
}

// has reports whether a field has a value that says something.
func has(value json.RawMessage) bool {
	return !slices.Contains([]string{"", "null", "false", `""`, "[]", "{}", "0"}, string(value))
}

// exitFails reports whether an object has the status of a process that failed.
func exitFails(fields map[string]json.RawMessage) bool {
	for _, name := range []string{"exit_code", "exitCode", "returncode"} {
		var code float64
		if json.Unmarshal(fields[name], &code) == nil && code != 0 {
			return true
		}
	}
	return false
}

// failedStatuses are values of a field "status", in lower case.
var failedStatuses = []string{"error", "failed", "failure", "fail", "timeout"}

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

// errorCode matches one or two codes behind a word for an error.
var errorCode = regexp.MustCompile(`(?:\s+\(?[\w-]{0,8}\d[\w-]{0,12}\)?){1,2}$`)

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
