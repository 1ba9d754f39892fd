package chunker_test

import (
	"flag"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/loci-memory/loci/chunker"
	"github.com/loci-memory/loci/db/dbtest/scale"
)

// Property tests check 100 random cases each in make test, and more in make verify-all.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", strconv.Itoa(scale.Pure(100, 1_000))); err != nil {
		panic(err)
	}
	m.Run()
}

var allKinds = []chunker.Kind{chunker.Prose, chunker.Markdown, chunker.Code, chunker.Rows, ""}

// counts are token counters. The last two count fewer tokens in some longer texts, as real tokenizers do.
var counts = map[string]func(string) int{
	"estimate": chunker.Estimate,
	"runes":    utf8.RuneCountInString,
	"bytes":    func(s string) int { return len(s) },
	"words":    func(s string) int { return len(strings.Fields(s)) },
	"merging":  func(s string) int { return utf8.RuneCountInString(strings.ReplaceAll(s, "aaaa", "b")) },
	"erratic":  func(s string) int { return len(s) / (1 + 3*(len(s)%7/6)) },
}

// atoms are the parts of hostile texts.
var atoms = []string{
	"a", "word ", "Dr. Who said so. ", "It ended! ", "\n", "\n\n", "\r\n", "\r", "\t", "    ", " ", "\f", "é", "e\u0301",
	"日本語。", "👩‍👩‍👧", "🇫🇷", "\u200b", "\u2028",
	"# ", "## ", "#", "\n# One\n", "\n## Two\n\n", "\n### Three ###\n", "\nSet\n===\n", "\nSet\n---\n", "---\n",
	"---\ntitle: x\n---\n",
	"```", "\n```go\n", "\n```\n", "~~~\n", "| a | b |\n", "|---|---|\n", "- item\n", "1. item\n", "> quote\n",
	"func f() {\n", "\tx := 1\n", "}\n\n", "// says\n", "a,b,c\n", "\"", "\"x\ny\",2\n", "{\"k\": 1}\n",
	"2024-01-01 10:00:00,123 INFO x\n",
	"." + strings.Repeat(")", 70), strings.Repeat("a", 300), strings.Repeat(" ", 90), strings.Repeat("\n", 40),
	strings.Repeat("#", 50), strings.Repeat("x ", 700),
}

// texts generates hostile texts.
func texts() *rapid.Generator[string] {
	atom := rapid.OneOf(rapid.SampledFrom(atoms), rapid.StringN(0, 12, 40))
	return rapid.Map(rapid.SliceOfN(atom, 0, 60), func(parts []string) string {
		return strings.ToValidUTF8(strings.ReplaceAll(strings.Join(parts, ""), "\x00", ""), "")
	})
}

// options draws options. Most are degenerate.
func options(t *rapid.T) chunker.Options {
	name := rapid.SampledFrom([]string{"estimate", "runes", "bytes", "words", "merging", "erratic"}).Draw(t, "count")
	return chunker.Options{
		Kind:          rapid.SampledFrom(allKinds).Draw(t, "kind"),
		SizeTokens:    rapid.SampledFrom([]int{0, 1, 2, 3, 7, 20, 64, 300, 5000}).Draw(t, "size"),
		OverlapTokens: rapid.SampledFrom([]int{-1, 0, 1, 3, 10, 50, 300, 10000}).Draw(t, "overlap"),
		Count:         counts[name],
	}
}

func TestSplitKeepsItsPromisesOnHostileText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text, o := texts().Draw(t, "text"), options(t)
		checkChunks(t, text, o, chunker.Split(text, o))
	})
}

func TestSplitHoldsTheSizeWhenAShorterTextCountsMore(t *testing.T) {
	t.Parallel()
	text := english(20_000)
	for _, size := range []int{20, 50, 100, 300} {
		for _, kind := range allKinds {
			o := chunker.Options{Kind: kind, SizeTokens: size, Count: counts["erratic"]}
			checkChunks(t, text, o, chunker.Split(text, o))
		}
	}
}

// fataler is the part of testing.T and rapid.T that the checks use.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// checkChunks checks every promise of Split for any text.
func checkChunks(t fataler, text string, o chunker.Options, chunks []chunker.Chunk) {
	t.Helper()
	if blank := strings.TrimSpace(text) == ""; blank {
		if len(chunks) > 0 {
			t.Fatalf("Split(%q) = %d chunks, want none of a blank text", text, len(chunks))
		}
		return
	}
	var joined strings.Builder
	for i, c := range chunks {
		checkPlace(t, text, i, c)
		checkSize(t, o, i, c)
		if i > 0 && c.StartByte < chunks[i-1].StartByte {
			t.Fatalf("chunk %d starts at %d, before the chunk before it at %d", i, c.StartByte, chunks[i-1].StartByte)
		}
		joined.WriteString(c.Text[c.OverlapBytes:])
	}
	if got := joined.String(); got != text {
		t.Fatalf("bodies of %+v joined = %q, want %q", o, got, text)
	}
}

// checkPlace checks a chunk's byte positions and line numbers, and that it cuts no rune.
func checkPlace(t fataler, text string, i int, c chunker.Chunk) {
	t.Helper()
	if got := text[c.StartByte:c.EndByte]; got != c.Text || c.OverlapBytes < 0 || c.OverlapBytes >= len(c.Text) {
		t.Fatalf("chunk %d = %+v, want the text at its bytes, %q, and a body", i, c, got)
	}
	if body := c.Text[c.OverlapBytes:]; utf8.ValidString(text) && (!utf8.ValidString(c.Text) || !utf8.ValidString(body) ||
		!utf8.ValidString(c.Heading)) {
		t.Fatalf("chunk %d cuts a rune: %q, body %q, heading %q", i, c.Text, body, c.Heading)
	}
	first := 1 + strings.Count(text[:c.StartByte], "\n")
	last := 1 + strings.Count(text[:c.EndByte-1], "\n")
	if c.FirstLine != first || c.LastLine != last {
		t.Fatalf("chunk %d of %q covers lines %d to %d, want %d to %d", i, text, c.FirstLine, c.LastLine, first, last)
	}
}

// checkSize checks a chunk's tokens.
func checkSize(t fataler, o chunker.Options, i int, c chunker.Chunk) {
	t.Helper()
	size, count := o.SizeTokens, o.Count
	if size <= 0 {
		size = chunker.DefaultSizeTokens
	}
	if count == nil {
		count = chunker.Estimate
	}
	body := c.Text[c.OverlapBytes:]
	if got := count(body); got > size && (len(body) > utf8.UTFMax || utf8.ValidString(body) &&
		utf8.RuneCountInString(body) > 1) {
		t.Fatalf("body %d has %d tokens, want at most %d: %q", i, got, size, body)
	}
	// After an overlap is shortened to a word, only Estimate is certain to count no more tokens than before.
	if got := chunker.Estimate(c.Text[:c.OverlapBytes]); o.Count == nil && got > size/2 {
		t.Fatalf("overlap %d has %d tokens, want at most half of %d", i, got, size)
	}
	if o.OverlapTokens < 0 && c.OverlapBytes > 0 {
		t.Fatalf("chunk %d overlaps by %d bytes, want none", i, c.OverlapBytes)
	}
}

func TestLinesCountsAsGrepDoes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "a": 1, "a\n": 1, "a\n\n": 2, "\n": 1, "a\nb": 2, "a\r\nb\r\n": 2,
		"a\rb": 1} {
		if got := chunker.Lines(text); got != want {
			t.Errorf("Lines(%q) = %d, want %d", text, got, want)
		}
	}
}

// hostile are patterns that are slow for a splitter that reads too far ahead.
var hostile = map[string]string{
	"a": "a", "space": " ", "hash": "#", "fence": "```", "newline": "\n", "heading": "# a\n", "quote": "\"",
	"odd quotes": "\"\n",
	"closers":    ".)", "stop": ".", "stop and spaces": "." + strings.Repeat(" ", 5000), "brackets": "." +
		strings.Repeat("」", 5000),
	"mark": "\u0301", "tables": "|-|\n", "fences": "```\n", "rule": "---\n", "comments": "//\n", "tabs": "\t",
	"CRLF": "\r\n", "blank headings": "#\n\n",
	"joiner": "\u200d", "flags": "🇫🇷", "setext": "a\n---\n", "csv": "a,\"b\n",
}

func TestSplitOfAHostileRunKeepsItsPromises(t *testing.T) {
	t.Parallel()
	for name, pattern := range hostile {
		for _, kind := range allKinds {
			t.Run(name+"/"+string(kind), func(t *testing.T) {
				t.Parallel()
				for _, head := range []string{"x", "x\n", "x,y\n1,2\n", "# T\n```\n", "{"} {
					text := head + strings.Repeat(pattern, 20_000/len(pattern)+1)
					o := chunker.Options{Kind: kind}
					chunks := chunker.Split(text, o)
					joinedIs(t, text, chunks)
					dense := slices.Contains([]string{"🇫🇷", "\u0301", "\u200d"}, pattern) // patterns with many tokens
					if most := len(text)/64 + 8; len(chunks) > most && !dense {
						t.Errorf("Split of %q… has %d chunks, want at most %d", text[:20], len(chunks), most)
					}
				}
			})
		}
	}
}

// joinedIs checks that the joined bodies are the text. It leaves out the quadratic checks of checkChunks.
func joinedIs(t *testing.T, text string, chunks []chunker.Chunk) {
	t.Helper()
	end := 0
	for i, c := range chunks {
		if c.StartByte+c.OverlapBytes != end || c.Text != text[c.StartByte:c.EndByte] {
			t.Fatalf("body %d starts at %d, want %d", i, c.StartByte+c.OverlapBytes, end)
		}
		checkSize(t, chunker.Options{}, i, c)
		end = c.EndByte
	}
	if end != len(text) {
		t.Fatalf("the last body ends at %d, want %d", end, len(text))
	}
}

func TestSplitCountsTokensALinearNumberOfTimes(t *testing.T) {
	scale.NotRaced(t)
	t.Parallel()
	for name, pattern := range hostile {
		for _, kind := range allKinds {
			counted := 0
			count := func(s string) int { counted += len(s); return chunker.Estimate(s) }
			text := "x" + strings.Repeat(pattern, 200_000/len(pattern))
			chunker.Split(text, chunker.Options{Kind: kind, Count: count})
			if counted > 60*len(text) {
				t.Errorf("%s as %s: counted %d bytes of a text of %d, want at most 60 times as many", name, kind, counted,
					len(text))
			}
		}
	}
}

func FuzzSplit(f *testing.F) {
	for i, atom := range atoms {
		f.Add(atom+"text\n"+atom, uint8(i), 1+i%9, i%5)
	}
	f.Add("# T\n\n## A\ntext\n\n```\n# no\n```\n## B\nmore text. And more.\n", uint8(1), 8, 3)
	f.Add("not \xfc\xa4 UTF-8 \x80\x80\x80\x80\x80\x80", uint8(0), 1, 1)
	f.Add("a,b\n1,\"x\ny\"\n2,z\n", uint8(3), 4, 2)
	f.Add("0000\xfc\x80\x80\x80\x80", uint8(0), 1, 1)
	f.Add("! \xba\xcf\x02\x1b!\xa0\xaa\x17<", uint8(4), 1, 1)
	f.Fuzz(func(t *testing.T, text string, kind uint8, size, overlap int) {
		o := chunker.Options{Kind: allKinds[int(kind)%len(allKinds)], SizeTokens: size, OverlapTokens: overlap}
		checkChunks(t, text, o, chunker.Split(text, o))
	})
}

func BenchmarkSplit(b *testing.B) {
	cases := map[string]struct {
		kind chunker.Kind
		text string
	}{
		"english":  {chunker.Prose, english(5 << 20)},
		"markdown": {chunker.Markdown, "# T\n\n" + english(5<<20)},
		"code": {chunker.Code, strings.Repeat("// F does it.\nfunc F(a int) error {\n\tif a > 0 {\n\t\treturn nil\n\t}\n\n"+
			"\treturn errors.New(\"small\")\n}\n\n", 50_000)},
		"rows":    {chunker.Rows, "id,name,note\n" + strings.Repeat("12345,Some Name,\"a note, quoted\"\n", 150_000)},
		"chinese": {chunker.Prose, strings.Repeat("敏捷的棕色狐狸跳过了懒狗。然后它睡着了，", 80_000)},
	}
	for name, pattern := range hostile {
		cases["hostile "+name] = struct {
			kind chunker.Kind
			text string
		}{chunker.Markdown, "x\n" + strings.Repeat(pattern, (1<<20)/len(pattern))}
	}
	for name, c := range cases {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(c.text)))
			for b.Loop() {
				chunker.Split(c.text, chunker.Options{Kind: c.kind})
			}
		})
	}
}

// english returns about n bytes of paragraphs, the same in every run.
func english(n int) string {
	vocabulary := strings.Fields("the of and to in a is that for it as was with be by on not he his but at are this " +
		"have from or had an they which one you were")
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for b.Len() < n {
		for range 3 + r.IntN(6) {
			b.WriteString("Somebody")
			for range 6 + r.IntN(14) {
				b.WriteByte(' ')
				b.WriteString(vocabulary[r.IntN(len(vocabulary))])
				if r.IntN(3) == 0 {
					b.WriteString("something"[r.IntN(4):])
				}
			}
			b.WriteString(". ")
		}
		b.WriteString("\n\n")
	}
	return b.String()
}
