package tool_test

import (
	"strings"
	"testing"
)

// Each error of each command has its text, and none of these calls changes a file.
func TestErrorsOfTheMemoryCommands(t *testing.T) {
	t.Parallel()
	w := memoryWorld(t)
	for _, args := range []string{`{"command":"create","path":"/memories/a.md","file_text":"one\ntwo\none"}`,
		`{"command":"create","path":"/memories/dir/b.md","file_text":"b"}`} {
		if got := w.run(t, "memory_files", args); got.IsError {
			t.Fatal(got.Text)
		}
	}
	before := w.run(t, "memory_files", `{"command":"view","path":"/memories/a.md"}`).Text
	for claim, row := range map[string]struct{ args, says string }{
		"view: no such path": {`"view","path":"/memories/x"`,
			"does not exist"},
		"view: outside of the tree": {`"view","path":"/etc/passwd"`,
			"/memories"},
		"view: climbs out of the tree": {`"view","path":"/memories/../x"`,
			"/memories"},
		"view: a range of a directory": {`"view","path":"/memories/dir","view_range":[1,2]`,
			"directory"},
		"view: a range beyond the end": {`"view","path":"/memories/a.md","view_range":[9,12]`,
			"from 1 to 3"},
		"view: a range backwards": {`"view","path":"/memories/a.md","view_range":[3,2]`,
			"view_range"},
		"create: the file exists": {`"create","path":"/memories/a.md","file_text":"x"`,
			"exists"},
		"create: a directory exists": {`"create","path":"/memories/dir","file_text":"x"`,
			"directory"},
		"create: below a file": {`"create","path":"/memories/a.md/x","file_text":"x"`,
			"a.md"},
		"create: no path": {`"create","file_text":"x"`,
			"needs the argument path"},
		"str_replace: no such file": {`"str_replace","path":"/memories/x","old_str":"a","new_str":"b"`,
			"does not exist"},
		"str_replace: a directory": {`"str_replace","path":"/memories/dir","old_str":"a","new_str":"b"`,
			"does not exist"},
		"str_replace: no such text": {`"str_replace","path":"/memories/a.md","old_str":"six","new_str":"b"`,
			"does not occur"},
		"str_replace: several such": {`"str_replace","path":"/memories/a.md","old_str":"one","new_str":"b"`,
			"[1, 3]"},
		"str_replace: no old text": {`"str_replace","path":"/memories/a.md","new_str":"b"`,
			"needs the argument old_str"},
		"insert: no such file": {`"insert","path":"/memories/x","insert_line":0,"insert_text":"a"`,
			"does not exist"},
		"insert: a directory": {`"insert","path":"/memories/dir","insert_line":0,"insert_text":"a"`,
			"does not exist"},
		"insert: no such line": {`"insert","path":"/memories/a.md","insert_line":9,"insert_text":"a"`,
			"from 0 to 3"},
		"insert: a line below 0": {`"insert","path":"/memories/a.md","insert_line":-2,"insert_text":"a"`,
			"from 0 to 3"},
		"insert: no text": {`"insert","path":"/memories/a.md","insert_line":0`,
			"needs the argument insert_text"},
		"delete: no such path": {`"delete","path":"/memories/x"`,
			"does not exist"},
		"delete: the tree itself": {`"delete","path":"/memories"`,
			"/memories"},
		"delete: no path": {`"delete"`,
			"needs the argument path"},
		"rename: no such path": {`"rename","old_path":"/memories/x","new_path":"/memories/y"`,
			"does not exist"},
		"rename: the new path exists": {`"rename","old_path":"/memories/a.md","new_path":"/memories/dir/b.md"`,
			"exists"},
		"rename: a directory into itself": {`"rename","old_path":"/memories/dir","new_path":"/memories/dir/c"`,
			"dir"},
		"rename: the tree itself": {`"rename","old_path":"/memories","new_path":"/memories/c"`,
			"/memories"},
		"rename: outside of the tree": {`"rename","old_path":"/memories/a.md","new_path":"/tmp/a"`,
			"/memories"},
		"rename: no new path": {`"rename","old_path":"/memories/a.md"`,
			"needs the argument new_path"},
		"no such command": {`"move"`,
			"view, create, overwrite, str_replace, insert, delete and rename"},
	} {
		got := w.run(t, "memory_files", `{"command":`+row.args+`}`)
		if !got.IsError || !strings.Contains(got.Text, row.says) {
			t.Errorf("%s: got %q (error %v), want %q", claim, got.Text, got.IsError, row.says)
		}
	}
	if after := w.run(t, "memory_files", `{"command":"view","path":"/memories/a.md"}`).Text; after != before {
		t.Errorf("an error changed the file:\n%s", after)
	}
	w.run(t, "memory_files", `{"command":"insert","path":"/memories/dir/b.md","insert_line":1,"insert_text":""}`)
	if got := w.run(t, "memory_files", `{"command":"view","path":"/memories/dir/b.md"}`); !strings.Contains(got.Text,
		"     2\t\n") {
		t.Errorf("an empty text inserts an empty line: got %q", got.Text)
	}
}
