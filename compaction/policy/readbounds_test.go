package policy_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/policy"
)

// boundsOf returns a preset's bounds for what tools read of files.
func boundsOf(t *testing.T, preset string) *policy.ReadBounds {
	t.Helper()
	p, err := policy.Preset(preset)
	if err != nil {
		t.Fatal(err)
	}
	b := p.ReadBounds()
	if b == nil {
		t.Fatalf("%s has no bounds of reads", preset)
	}
	return b
}

// As many whole lines as fit are shown, and the rest follows them byte for byte.
func TestReadBoundsGoldenNumbers(t *testing.T) {
	t.Parallel()
	numbered := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "line%d\n", i)
		}
		return strings.TrimSuffix(b.String(), "\n")
	}
	repeated := func(line string, n int) string { return strings.TrimSuffix(strings.Repeat(line+"\n", n), "\n") }
	for name, w := range map[string]struct {
		preset, text string
		lines, bytes int
	}{
		"2,000 lines":                       {"pi", numbered(2_000), 2_000, 16_889},
		"50,000 lines":                      {"pi", numbered(50_000), 2_000, 16_889},
		"50 KB of long lines":               {"pi", repeated(sea(99), 1_000), 512, 51_199},
		"numbers of lines do not count":     {"pi", repeated("1234: "+sea(99), 1_000), 512, 51_199 + 512*6},
		"one line above 50 KB":              {"pi", sea(60_000), 0, 0},
		"2,001 lines":                       {"claude-code", numbered(2_001), 2_000, 16_889},
		"lines of signs that are tokens":    {"claude-code", strings.Repeat("漢字\n", 1_999), 2_000, 13_993},
		"more tokens than bytes would show": {"claude-code", repeated(strings.Repeat("漢", 40), 1_500), -1, -1},
	} {
		b, shown := boundsOf(t, w.preset), ""
		if shown = b.Lines(w.text); w.lines < 0 {
			next := strings.Index(w.text[len(shown)+1:], "\n")
			if b.Fits(w.text[:len(shown)+1+next]) || !b.Fits(shown) || len(shown) >= 262_144 {
				t.Errorf("%s: %d bytes are shown, and one line more would fit", name, len(shown))
			}
			continue
		}
		lines := 0
		if shown != "" {
			lines = strings.Count(shown, "\n") + 1
		}
		if lines != w.lines || len(shown) != w.bytes || !strings.HasPrefix(w.text, shown) {
			t.Errorf("%s: got %d lines, %d bytes; want %d, %d", name, lines, len(shown), w.lines, w.bytes)
		}
	}
	var all []string
	for rest := numbered(5_000); rest != ""; {
		shown := boundsOf(t, "pi").Lines(rest)
		all, rest = append(all, shown), strings.TrimPrefix(rest[len(shown):], "\n")
	}
	if strings.Join(all, "\n") != numbered(5_000) || len(all) != 3 {
		t.Errorf("%d reads do not give the file", len(all))
	}
}

func TestLongLinesAreCut(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 501)
	note := strings.Repeat("# NOTE: This view is cut. ", 30)
	if got, want := policy.CutNumbered("1: a\n2001: "+long+"\n3: b\n"+note, 500),
		"1: a\n2001: "+long[:1000]+"... [truncated]\n3: b\n"+note; got != want {
		t.Errorf("got %q", got)
	}
	if got, whole := policy.CutNumbered("2001: "+long[:1000]+"\n", 500), "2001: "+long[:1000]+"\n"; got != whole {
		t.Errorf("a line of 500 characters: got %q", got)
	}
	if got := policy.CutLine(long, 500); got != long[:1000]+"... [truncated]" || policy.CutLine(long, 0) != long {
		t.Errorf("got %q", got)
	}
}

// A repeated read leads to the older one as long as that is shown whole. A file that changed is shown again.
func TestAnUnchangedReadLeadsToTheOlderOne(t *testing.T) {
	t.Parallel()
	text := "* Opened docs/a.md\n" + sea(4_000)
	v := window(200_000).user(10).call("open_files", 5, text).call("open_files", 5, text).
		call("open_files", 5, text+" changed").call("bash", 5, text).call("bash", 5, text)
	stub := `{"steps":[{"step":"read_bounds","unchanged_stub":true}]}`
	after, edits := v.prune(stub, policy.Moment{})
	if len(edits) != 1 || edits[0].Kind != clip.Pointer || edits[0].Position != 5 {
		t.Fatalf("got %+v", edits)
	}
	if n := len(said(after, 5)); n > 300 || said(after, 3) != text {
		t.Errorf("%d bytes: %s", n, said(after, 5))
	}
	_, edits = v.prune(`{"steps":[{"step":"snip","max_chars":1000,"head_share":0.1,"tail_share":0.1},
		{"step":"read_bounds","unchanged_stub":true}]}`, policy.Moment{})
	for _, e := range edits {
		if e.Kind == clip.Pointer {
			t.Errorf("a read leads to another that is cut: %+v", e)
		}
	}
}
