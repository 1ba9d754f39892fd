package recall_test

import (
	"strings"
	"testing"

	"github.com/loci-memory/loci/recall"
)

// A failed call is known by its text in APIs without a field for it. A result that only speaks of errors did not fail.
func TestFailedResultsAreKnownByTheirText(t *testing.T) {
	t.Parallel()
	trace := "Traceback (most recent call last):\n  File \"a.py\", line 3, in <module>\n    x()\n"
	for text, want := range map[string]bool{
		"Error: connection refused":         true,
		"error: pathspec 'x' did not match": true,
		"ERROR: no such table":              true,
		trace + "ValueError: bad":           true,
		"building\n" + trace + "requests.exceptions.ConnectionError: refused": true,
		"exit code 1": true,
		"Exit code: 127\nbash: foo: command not found":          true,
		"FAIL pkg\nexit status 2":                               true,
		"3 tests failed\n\nProcess exited with code 1":          true,
		"Command failed with exit code 3":                       true,
		"bash: frobnicate: command not found":                   true,
		`{"error": "no such order"}`:                            true,
		`{"error": {"code": 404}}`:                              true,
		`{"is_error": true, "text": "x"}`:                       true,
		`{"isError": true, "content": []}`:                      true,
		`{"status": "error", "detail": "x"}`:                    true,
		`{"status": "Failed", "message": "x", "time": "now"}`:   true,
		`{"success": false}`:                                    true,
		`{"stdout": "", "exit_code": 2}`:                        true,
		"<tool_use_error>File does not exist.</tool_use_error>": true,

		"TypeError: Cannot read properties of undefined\n    at foo (/a.js:3:9)":                   true,
		"Exception in thread \"main\" java.lang.NullPointerException\n\tat a.B.c(B.java:3)":        true,
		"thread 'main' panicked at src/main.rs:4:5:\nindex out of bounds":                          true,
		"a.rb:3:in `x': undefined method (NoMethodError)":                                          true,
		"Unhandled exception. System.InvalidOperationException: no elements":                       true,
		"Command timed out after 120s":                                                             true,
		"HTTP/1.1 500 Internal Server Error\nContent-Length: 0":                                    true,
		"HTTP/1.1 200 OK\nContent-Length: 0":                                                       false,
		"HTTP 503 Service Unavailable":                                                             true,
		"HTTP 200 OK":                                                                              false,
		"HTTP 4 of 9 checks":                                                                       false,
		"npm ERR! code E404\nnpm ERR! 404 Not Found":                                               true,
		"/srv/a.js:3\n  throw new Error('no lid')\n  ^\n\nError: no lid\n    at f (/srv/a.js:3:9)": true,
		"ОШИБКА 0x8007: лента закончилась":                                                         true,

		"Fehler: Das Zertifikat ist abgelaufen": true,
		"Erreur : fichier introuvable":          true,
		"エラー：ポートは使用中です":                         true,
		"Ошибка: нет места":                     true,
		"오류: 찾을 수 없습니다":                         true,
		"خطأ: تعذر الاتصال":                     true,
		"Fehlerfrei: alle Tests":                false,
		"Zahl der Fehler: 0":                    false,

		"":                                      false,
		"ok":                                    false,
		"exit code 0":                           false,
		"All tests passed\nexit status 0":       false,
		`{"error": null, "rows": 3}`:            false,
		`{"status": "OK", "message": "Error:"}`: false,
		`{"exit_code": 0}`:                      false,
		`{"ok": true}`:                          false,
		"1: Error: this line is of a log that was read":                           false,
		"errors.go\nerrors_test.go":                                               false,
		"Errors are values.":                                                      false,
		"The manual says: exit code 1 means that no line matched. Use 0 instead.": false,
		"About tracebacks:\n" + trace + "ValueError: bad\n" + "…and so the section on tracebacks ends.": false,
		`{"rows": [{"error": "x"}]}`:                      false,
		`{"error": "` + strings.Repeat("x", 1<<20) + `"}`: false,
	} {
		if got := (recall.Part{Type: recall.ToolReturn, Text: text}).Failed(); got != want {
			t.Errorf("%.60q: %t", text, got)
		}
	}
	if !(recall.Part{Type: recall.ToolReturn, Text: "ok", IsError: true}).Failed() {
		t.Error("is_error is not believed")
	}
	if (recall.Part{Type: recall.Text, Text: "Error: x"}).Failed() {
		t.Error("a text is taken for a failed result")
	}
}
