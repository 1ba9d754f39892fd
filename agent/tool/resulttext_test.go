package tool_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/loci-memory/loci/agent/tool"
)

func TestCapped(t *testing.T) {
	t.Parallel()
	const note = "... [NOTE: function output was truncated since it exceeded the character limit ("
	full := strings.Repeat("é", tool.MaxChars)
	if got := tool.Capped(full, tool.MaxChars); got != full {
		t.Errorf("a text of %d characters became %d", tool.MaxChars, utf8.RuneCountInString(got))
	}
	for _, tt := range []struct{ name, text, tail string }{
		{"one endless line is cut at a character", full + "é", "é" + note + "50001 > 50000)]"},
		{"lines are cut at their end", strings.Repeat("a whole line\n", 10_000),
			"\na whole line\n" + note + "130000 > 50000)]"},
		{"a line end far off is not looked for", "head\n" + full, "é" + note + "50005 > 50000)]"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := tool.Capped(tt.text, tool.MaxChars)
			if n := utf8.RuneCountInString(got); n > tool.MaxChars || n < tool.MaxChars-200 || !utf8.ValidString(got) {
				t.Errorf("%d characters, valid %t", n, utf8.ValidString(got))
			}
			if !strings.HasSuffix(got, tt.tail) {
				t.Errorf("it ends in %q, want %q", got[len(got)-120:], tt.tail)
			}
		})
	}
}
