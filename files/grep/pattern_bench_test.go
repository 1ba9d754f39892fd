package grep_test

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/files/grep"
)

// benchText returns 20 MB of prose, code and log lines.
func benchText() string {
	random := rand.New(rand.NewPCG(7, 7))
	words := strings.Fields(
		"light colour prism refract the of a storage handler Handler segment parser returns error value nil func " +
			"user=alice user=carol svc-7 svc-12 ERROR INFO needle_ request timeout " +
			"connection ReadAll openFile deadbeef 0badcafe")
	var b strings.Builder
	for b.Len() < 20<<20 {
		for range 4 + random.IntN(16) {
			b.WriteString(words[random.IntN(len(words))])
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%08x=%d\n", random.Uint32(), random.IntN(100))
	}
	return b.String()
}

var benchPatterns = []string{
	`needle_\d+_XyZ`, `(?i)error.*svc-7\b`, `\b\w+Handler\b`, `(light|colou?rs|prism)s? .*refract`,
	`[0-9a-f]{8} user=(alice|bob)`,
	`.*.*.*=.*=.*zz`, `(?i)notpresentliteral`, `notpresentliteral`, `.`,
	`(?i)\b[jq][xz][jq]\d\b`,
}

func BenchmarkLines(b *testing.B) {
	text := benchText()
	blocks := slices.Collect(grep.Segments(text))
	for _, pattern := range benchPatterns {
		p := compile(b, pattern, grep.PatternOptions{CaseSensitive: true})
		b.Run(pattern, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for _, s := range blocks {
					p.Lines(s.Text, func(_, _, _ int) bool { return true })
				}
			}
		})
	}
}

// BenchmarkLinesStandard does the same with the standard library, block by block.
func BenchmarkLinesStandard(b *testing.B) {
	text := benchText()
	blocks := slices.Collect(grep.Segments(text))
	for _, pattern := range benchPatterns {
		re := regexp.MustCompile("(?m)(?:" + pattern + ")[^\n]*")
		b.Run(pattern, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for _, s := range blocks {
					re.FindAllStringIndex(s.Text, -1)
				}
			}
		})
	}
}
