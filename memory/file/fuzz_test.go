package file_test

import (
	"strings"
	"testing"

	memoryfile "github.com/loci-memory/loci/memory/file"
)

// str_replace replaces one occurrence or nothing. insert adds lines and keeps all others.
func FuzzEdits(f *testing.F) {
	f.Add("one\ntwo\n", "two", "2", 1)
	f.Add("a\r\nb", "\n", "", 0)
	f.Add("", "", "x\n", -1)
	f.Add("aaa", "aa", "a", 1)
	f.Add("日本\n語", "本", "\u2028", 2)
	f.Fuzz(func(t *testing.T, content, old, text string, line int) {
		content = strings.ReplaceAll(content, "\r\n", "\n")
		replaced, err := memoryfile.ReplaceOnce("/memories/a", content, old, text)
		plain := !strings.ContainsRune(content+old+text, '\r')
		if plain && (err == nil) != (old != "" && strings.Count(content, old) == 1) {
			t.Errorf("%q in %q: got %v", old, content, err)
		}
		if before, after, _ := strings.Cut(content, old); plain && err == nil && replaced != before+text+after {
			t.Errorf("%q in %q became %q", old, content, replaced)
		}
		crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
		if err == nil && plain && strings.LastIndex(old, "\n") > 0 && old[0] != '\n' {
			got, err := memoryfile.ReplaceOnce("/memories/a", crlf(content), old, text)
			if err != nil || got != crlf(replaced) {
				t.Errorf("%q in %q became %q, %v", old, crlf(content), got, err)
			}
		}
		lines := memoryfile.Lines(content)
		inserted, err := memoryfile.Insert("/memories/a", content, text, line)
		if (err == nil) != (line >= memoryfile.AtEnd && line <= len(lines)) {
			t.Fatalf("line %d of %q: got %v", line, content, err)
		}
		if err != nil || !plain {
			return
		}
		if line == memoryfile.AtEnd {
			line = len(lines)
		}
		want := strings.Join(append(append(append([]string{}, lines[:line]...), strings.TrimSuffix(text, "\n")),
			lines[line:]...), "\n")
		if inserted != want && inserted != want+"\n" {
			t.Errorf("%q at line %d of %q became %q, want %q", text, line, content, inserted, want)
		}
	})
}

// isLineEnd reports whether a character ends a line of an index.
func isLineEnd(r rune) bool { return strings.ContainsRune("\n\r\v\f\u0085\u2028\u2029", r) }

// Whatever an index contains, and whatever topics a model names, each line is in some file of the proposal, and the
// index obeys its rules.
func FuzzCompress(f *testing.F) {
	f.Add(grown(30), "/memories/a.md", "A", 1, 30)
	f.Add("# A\n```\n# b\n|x|\n|---|\n- c\n", "/memories/MEMORY.md", "|", 0, 9)
	f.Add("- people/ada.md\n- TODO: x\n\n## \n###### y\n", "/memories/x/../y", "", -1, 2)
	f.Add("0\f", "0", "0", 0, 9)
	f.Add("one\u2028two\v\u0085three", "a.md", "A", 1, 2)
	f.Fuzz(func(t *testing.T, text, path, title string, from, to int) {
		if strings.ContainsRune(text, 0) || len(text) > 50_000 {
			return
		}
		topics := []memoryfile.Topic{{Path: path, Title: title, Lines: [][2]int{{from, to}}}}
		files, err := memoryfile.Compressed(text, topics)
		if err != nil {
			return // there is nothing to move
		}
		var all strings.Builder
		for _, file := range files {
			all.WriteString(file.Content + "\n")
			if parsed, err := memoryfile.ParseFile(file.Path); err != nil || parsed != file.Path {
				t.Errorf("a file of the proposal is %q, %v", file.Path, err)
			}
		}
		for _, line := range strings.FieldsFunc(text, isLineEnd) {
			if strings.TrimSpace(line) != "" && !strings.HasPrefix(line, "#") && !strings.Contains(all.String(), line) {
				t.Errorf("no file has the line %q of %q", line, text)
			}
		}
		last := len(files) - 1
		if broken := memoryfile.Breaches(files[last].Content, files[:last]); len(broken) > 0 {
			t.Errorf("the index %q breaks %v", files[last].Content, broken)
		}
	})
}
