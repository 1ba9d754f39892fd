package block_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/pmezard/go-difflib/difflib"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/memory/block"
)

func TestEditsOfAValue(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		edit func() (string, error)
		want string // the result; for an error, its text
	}{
		{"append to nothing", func() (string, error) { return block.Append("", "a"), nil }, "a"},
		{"append on a line of its own", func() (string, error) { return block.Append("a", "\tb"), nil }, "a\n\tb"},
		{"replace all", func() (string, error) { return block.ReplaceAll("l", "x y x", "x", "z") }, "z y z"},
		{"replace all of nothing", func() (string, error) { return block.ReplaceAll("l", "x", "q", "z") },
			"Old content 'q' not found in memory block 'l'"},
		{"replace once, tabs kept", func() (string, error) { return block.ReplaceOnce("l", "a\tb\tc", "a\tb", "1→ }{") },
			"1→ }{\tc"},
		{"replace what is not there", func() (string, error) { return block.ReplaceOnce("l", "a", "b", "c") },
			"did not appear verbatim in memory block with label `l`"},
		{"replace what is there twice", func() (string, error) { return block.ReplaceOnce("l", "a\nb\nba", "b", "c") },
			"in lines [2, 3]"},
		{"replace lines that are there twice", func() (string, error) {
			return block.ReplaceOnce("l", "a\nb\nx\na\nb", "a\nb",
				"c")
		}, "in lines [1, 4]"},
		{"LF matches CRLF", func() (string, error) { return block.ReplaceOnce("l", "a\r\nb\r\nc", "a\nb", "x\ny") },
			"x\r\ny\r\nc"},
		{"LF behind the CR that it belongs to", func() (string, error) {
			return block.ReplaceOnce("l", "a\r\n.", "\n.", "\n.")
		}, "a\r\n."},
		{"LF and more become a word", func() (string, error) { return block.ReplaceOnce("l", "a\r\nb", "\nb", "c") }, "ac"},
		{"places that share a CRLF", func() (string, error) {
			return block.ReplaceAll("l", "\r\n.\r\n.\r\n", "\n.\r", "\n.\r")
		}, "\r\n.\r\n.\r\n"},
		{"LF of mixed line ends", func() (string, error) {
			return block.ReplaceOnce("l", "a\nb\r\nc", "\nc", "\nc")
		}, "a\nb\r\nc"},
		{"CRLF matches LF", func() (string, error) { return block.ReplaceOnce("l", "a\nb\nc", "a\r\nb", "x\r\ny") },
			"x\ny\nc"},
		{"a line becomes two that end in CRLF", func() (string, error) {
			return block.ReplaceOnce("l", "a\r\nb\r\n", "b", "c\nd")
		}, "a\r\nc\r\nd\r\n"},
		{"LF matches CRLF among others", func() (string, error) {
			return block.ReplaceOnce("l", "a\r\nb\nc", "a\nb\nc", "x")
		}, "x"},
		{"LF matches CRLF, twice", func() (string, error) {
			return block.ReplaceOnce("l", "a\r\nb\r\na\r\nb", "a\nb", "x")
		}, "in lines [1, 3]"},
		{"LF matches CRLF everywhere", func() (string, error) {
			return block.ReplaceAll("l", "a\r\nb\r\na\r\nb", "a\nb", "x\ny")
		}, "x\r\ny\r\nx\r\ny"},
		{"append to CRLF", func() (string, error) { return block.Append("a\r\nb", "c\nd"), nil }, "a\r\nb\r\nc\r\nd"},
		{"insert into CRLF", func() (string, error) { return block.Insert("a\r\nb", "x\ny", 1) }, "a\r\nx\r\ny\r\nb"},
		{"insert CRLF into LF", func() (string, error) { return block.Insert("a\nb", "x\r\ny", 0) }, "x\ny\na\nb"},
		{"patch of CRLF", func() (string, error) {
			p, err := block.ParsePatch("b", " a\n-b\n+c\n+d")
			if err != nil {
				return "", err
			}
			return p[0].Apply("a\r\nb\r\ne")
		}, "a\r\nc\r\nd\r\ne"},
		{"patch with CRLF of LF", func() (string, error) {
			p, err := block.ParsePatch("b", " a\r\n-b\r\n+c\r")
			if err != nil {
				return "", err
			}
			return p[0].Apply("a\nb\ne")
		}, "a\nc\ne"},
		{"replace nothing", func() (string, error) { return block.ReplaceOnce("l", "ab", "", "c") }, "old_string is empty"},
		{"insert into nothing", func() (string, error) { return block.Insert("", "a", block.AtEnd) }, "a"},
		{"insert before the first line", func() (string, error) { return block.Insert("b", "a", 0) }, "a\nb"},
		{"insert after a line", func() (string, error) { return block.Insert("a\nc", "b", 1) }, "a\nb\nc"},
		{"insert at the end", func() (string, error) { return block.Insert("a\n", "b", block.AtEnd) }, "a\nb\n"},
		{"insert a line with its end", func() (string, error) { return block.Insert("a\nc", "b\n", 1) }, "a\nb\nc"},
		{"insert a line with its end at the end", func() (string, error) {
			return block.Insert("a", "b\n", block.AtEnd)
		}, "a\nb"},
		{"insert an empty line", func() (string, error) { return block.Insert("a\nc", "\n", 1) }, "a\n\nc"},
		{"insert at the end of CRLF", func() (string, error) {
			return block.Insert("a\r\n", "b\n", block.AtEnd)
		}, "a\r\nb\r\n"},
		{"insert CRLF into one line", func() (string, error) {
			return block.Insert("a", "x\r\ny", block.AtEnd)
		}, "a\r\nx\r\ny"},
		{"append after a line's end", func() (string, error) { return block.Append("a\n", "b"), nil }, "a\nb"},
		{"append CRLF to LF", func() (string, error) { return block.Append("a\nb", "c\r\nd"), nil }, "a\nb\nc\nd"},
		{"append CRLF to one line", func() (string, error) { return block.Append("a", "c\r\nd"), nil }, "a\r\nc\r\nd"},
		{"a patch appends after a line's end", func() (string, error) {
			p, err := block.ParsePatch("b", "+c")
			if err != nil {
				return "", err
			}
			return p[0].Apply("a\n")
		}, "a\nc\n"},
		{"insert after the end", func() (string, error) { return block.Insert("a", "b", 2) }, "[0, 1], or -1"},
		{"insert before the beginning", func() (string, error) { return block.Insert("a", "b", -2) },
			"Invalid `insert_line` parameter: -2"},
	} {
		got, err := tt.edit()
		if err != nil {
			got = err.Error()
		}
		if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestPatchesOfAValue(t *testing.T) {
	t.Parallel()
	const value = "# Title\n\n- one\n-- two\n+ three\n\tfour"
	for _, tt := range []struct{ name, patch, want string }{
		{"a line", "-- one\n+- uno", "# Title\n\n- uno\n-- two\n+ three\n\tfour"},
		{"with what stands around it", "@@\n - one\n--- two\n+-- deux\n + three",
			"# Title\n\n- one\n-- deux\n+ three\n\tfour"},
		{"two hunks", "@@ -1 +1 @@\n-# Title\n+# Other\n@@\n-\tfour\n+\tvier", "# Other\n\n- one\n-- two\n+ three\n\tvier"},
		{"with the names of files", "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-# Title\n+# Other\n",
			"# Other\n\n- one\n-- two\n+ three\n\tfour"},
		{"an empty line within", " # Title\n\n-- one", "# Title\n\n-- two\n+ three\n\tfour"},
		{"only new lines go to the end", "+last", value + "\nlast"},
		{"nothing is changed", " - one", "No applicable hunks found in patch"},
		{"lines that are not there", "-- nine\n+- ten", "expected hunk context not found"},
		{"the second of two fails", "@@\n-# Title\n+# Other\n@@\n-gone\n+come", "expected hunk context not found"},
	} {
		got, err := apply(tt.patch, value)
		if err != nil {
			got = err.Error()
		}
		if got != tt.want && (err == nil || !strings.Contains(got, tt.want)) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	if _, err := apply("-a\n+b", "a\na"); err == nil || !strings.Contains(err.Error(), "multiple places") {
		t.Errorf("a line that is there twice: got %v", err)
	}
}

func apply(patch, value string) (string, error) {
	p, err := block.ParsePatch("l", patch)
	if err != nil {
		return "", err
	}
	return p[0].Apply(value)
}

func TestPatchesOfSeveralBlocks(t *testing.T) {
	t.Parallel()
	p, err := block.ParsePatch("ignored", "*** Begin Patch\n*** Add Block: a/b\nDescription: what it "+
		"is\n+one\n+\n+two\n*** Delete Block: old\n*** Update Block: c\n*** Move to: d\n-x\n+y\n*** End Patch\n")
	if err != nil {
		t.Fatal(err)
	}
	about := "what it is"
	want := block.Patch{{Kind: block.AddBlock, Label: "a/b", Description: &about, Value: "one\n\ntwo"},
		{Kind: block.DeleteBlock, Label: "old"},
		{Kind: block.UpdateBlock, Label: "c", NewLabel: "d"}}
	if diff := cmp.Diff(want, p, cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".hunks" },
		cmp.Ignore())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got, err := p[2].Apply("w\nx"); err != nil || got != "w\ny" {
		t.Errorf("the update: got %q, %v", got, err)
	}
	for _, wrong := range []string{"text\n*** Delete Block: a", "*** Add Block: a\nno plus", "*** Update Block: a\n"} {
		if _, err := block.ParsePatch("l", wrong); err == nil {
			t.Errorf("%q is taken for a patch", wrong)
		}
	}
}

// The diff of two values, as a patch, turns one into the other. The reverse diff undoes it.
func TestADiffIsAPatch(t *testing.T) {
	t.Parallel()
	line := rapid.StringMatching(`[-+@ \t*a-c0-9→}{]{0,6}`)
	rapid.Check(t, func(t *rapid.T) {
		// distinct lines, so that every hunk has one place
		lines := rapid.SliceOfNDistinct(line, 1, 12, rapid.ID[string]).Draw(t, "lines")
		i := rapid.IntRange(0, len(lines)-1).Draw(t, "at")
		changed := append(append(append([]string{}, lines[:i]...), "x"+rapid.StringMatching(`[a-z]{0,3}`).Draw(t, "new")),
			lines[i+1:]...)
		before, after := strings.Join(lines, "\n"), strings.Join(changed, "\n")
		if before == "" || after == "" {
			return // a value without lines differs from one with an empty line
		}
		for _, pair := range [][2]string{{before, after}, {after, before}} {
			diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: strings.SplitAfter(pair[0]+"\n", "\n"),
				B:        strings.SplitAfter(pair[1]+"\n", "\n"),
				FromFile: "a", ToFile: "b", Context: 12})
			if err != nil {
				t.Fatal(err)
			}
			diff = strings.TrimSuffix(diff, " ") // the line after the last
			got, err := apply(diff, pair[0])
			if err != nil || got != pair[1] {
				t.Fatalf("%q by\n%s\nis %q (%v), want %q", pair[0], diff, got, err, pair[1])
			}
		}
	})
}
