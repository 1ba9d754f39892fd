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

// Harnesses, shells and build tools say in their own forms that a call failed.
func TestFailedResultsOfHarnessesAreKnown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`{"output":"boom\n","metadata":{"exit_code":2,"duration_seconds":0.1}}`:             true,
		`{"output":"fine\n","metadata":{"exit_code":0,"duration_seconds":0.1}}`:             false,
		"Chunk ID: 9f\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nboom\n": true,
		"Chunk ID: 9f\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nboom\n": false,
		"Exit code: 1\nWall time: 0.1 seconds\nOutput:\nboom\nboom":                         true,
		"Exit code: 0\nWall time: 0.1 seconds\nOutput:\nExit code: 1 is what fails":         false,
		"<returncode>1</returncode>\n<output>\nboom\n</output>":                             true,
		"<returncode>0</returncode>\n<output>\nboom\n</output>":                             false,
		"boom\n<exit_code>127</exit_code>":                                                  true,
		"Command exited with non-zero status code 1.\nstdout: x":                            true,
		"[The command completed with exit code 1.]":                                         true,
		"fine\n[The command completed with exit code 0.]":                                   false,
		"(exit code 2)":                                                      true,
		"MCP error -32602: Invalid params":                                   true,
		"Tool execution failed: timeout":                                     true,
		"The tool call failed because the server left":                       true,
		"Tool calls failed in 3 of 90 runs, says the report on page 4":       false,
		"❌ Error: no permission":                                             true,
		"**Error**: bad input":                                               true,
		`"Error: no permission"`:                                             true,
		"Error (404): not found":                                             true,
		"Error reading file: ENOENT: no such file or directory, open '/x'":   true,
		"Error handling: chapter 3 of the handbook":                          false,
		"Error\n\nsomething went wrong":                                      true,
		"Errors\n\nare values":                                               false,
		"ERROR 1045 (28000): Access denied for user 'x'":                     true,
		"cat: /nope: No such file or directory":                              true,
		"a line of a file\nrm: cannot remove 'x': Permission denied":         true,
		"notes.txt: a call of cat: /nope: No such file or directory":         false,
		"/bin/sh: 1: foo: not found":                                         true,
		"curl: (7) Failed to connect to localhost port 1":                    true,
		"cc -o a a.c\nmake: *** [Makefile:3: all] Error 2":                   true,
		"./run.sh: line 3: 411 Segmentation fault (core dumped) ./a":         true,
		"Segmentation fault (core dumped)":                                   true,
		"src/a.ts(3,5): error TS2345: Argument of type 'x'":                  true,
		"a.c:3:5: error: expected ';' before '}' token":                      true,
		"a.c:3:5: warning: unused variable":                                  false,
		"error[E0502]: cannot borrow `a` as mutable\n --> src/a.rs:3:5":      true,
		"--- FAIL: TestX (0.02s)\n    a_test.go:3: got 1\nFAIL\tx.org/a\t1s": true,
		"ok  \tx.org/a\t1s\nFAIL":                                            true,
		"F.\nFAILED t.py::t - AssertionError\n1 failed, 3 passed in 0.12s":   true,
		"==== 2 failed, 3 passed, 1 warning in 0.12s ====":                   true,
		"==== 3 passed, 1 warning in 0.12s ====":                             false,
		"0 failed, 3 passed in 0.12s":                                        false,
		"BUILD FAILED in 3s":                                                 true,
		"BUILD SUCCESSFUL in 3s":                                             false,
		`{"errors": [{"message": "bad"}], "data": null}`:                     true,
		`{"errors": [], "data": {"n": 3}}`:                                   false,
		`{"errors": [{"message": "one row"}], "data": {"n": 3}}`:             false,
		`{"statusCode": 404, "message": "no such order"}`:                    true,
		`{"status": 503}`:                                                    true,
		`{"status": 200}`:                                                    false,
		`{"status": "fail"}`:                                                 true,
		`{"status": "timeout"}`:                                              true,
		"File not found: /x/y":                                               true,
		"No such tool: frobnicate":                                           true,
		"Unable to connect to the host":                                      true,
		"Could not find file /x":                                             true,
		"Access denied":                                                      true,
		"Invalid arguments: path is required":                                true,
		"Cannot read the file /x: it is a directory":                         true,
		"Could not be better.\n\nThe rest of the letter is about the garden": false,
		"Error: 0": false,
	} {
		if got := (recall.Part{Type: recall.ToolReturn, Text: text}).Failed(); got != want {
			t.Errorf("%.90q: %t", text, got)
		}
	}
}
