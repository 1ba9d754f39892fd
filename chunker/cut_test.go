package chunker_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/loci-memory/loci/chunker"
)

// bodies splits a text and returns the chunks without their overlaps.
func bodies(text string, o chunker.Options) []string {
	var out []string
	for _, c := range chunker.Split(text, o) {
		out = append(out, c.Text[c.OverlapBytes:])
	}
	return out
}

func TestSplitCutsAtTheBestPlace(t *testing.T) {
	t.Parallel()
	bytes := counts["bytes"]
	for _, c := range []struct {
		name string
		kind chunker.Kind
		size int
		want []string // the bodies; joined, they are the text
	}{
		{"top-level sections stay apart however small", chunker.Markdown, 100, []string{"# A\na\n", "# B\nb\n"}},
		{"setext headings are headings", chunker.Markdown, 100, []string{"A\n===\na\n\n", "B\n===\nb\n"}},
		{"headings may end in CRLF", chunker.Markdown, 100, []string{"# A\r\na\r\n", "# B\r\nb\r\n"}},
		{"the sections of a document without a title are top-level", chunker.Markdown, 100,
			[]string{"## A\na\n", "## B\nb\n"}},
		{"small sisters share a chunk", chunker.Markdown, 100, []string{"# T\n## A\na\n## B\nb\n"}},
		{"questions do not share a chunk", chunker.Markdown, 100,
			[]string{"# T\n## Why?\na\n", "## How so?\nb\n", "## Where?\nc\n"}},
		{"a heading above a question goes with it", chunker.Markdown, 100,
			[]string{"# T\n### Why?\na\n", "## B\n### How?\nb\n"}},
		{"bold questions, and those with definitions", chunker.Markdown, 100,
			[]string{"**Why?**\n\na\n\n", "**How?** \n\nb\n\n", "Where?\n\n: c\n\nReally? And so on?\n\nd\n"}},
		{"questions with labels", chunker.Prose, 100,
			[]string{"Introduction.\n\n", "Q: why\nA: a\n\n", "Question 2. How\n\nA: b\n\nA, too\n\n", "Q3) Where\nc\n"}},
		{"numbered questions, also over two lines", chunker.Prose, 100,
			[]string{"1.1 Why?\na\n\n", "1.2: How do I do\nthis?\n\nb\n\n", "(2) Where?\nc\n\n2. No question.\nd\n"}},
		{"a list of questions stays whole", chunker.Prose, 100,
			[]string{"1. Why?\n\n2. How?\n\n3. Where?\n\nAn end.\n\n", "1. Why?\na\n"}},
		{"questions in a story are no questions", chunker.Prose, 100, []string{"Why?\n\nHow so?\n\nHe asked.\n\nWhere?\n"}},
		{"a section does not share with its mother's sister", chunker.Markdown, 60,
			[]string{"# T\n## A\n" + strings.Repeat("a ", 20) + "\n", "### A1\n" + strings.Repeat("a ", 20) + "\n",
				"## B\nb\n"}},
		{"a section that does not fit starts a chunk", chunker.Markdown, 40,
			[]string{"# T\n## A\nshort text\n", "## B\nthis one is rather longer text\n"}},
		{"a hash in a fence is no heading", chunker.Markdown, 100, []string{"# A\n```\n# B\n```\na\n"}},
		{"a tilde fence is closed by tildes", chunker.Markdown, 100, []string{"# A\n~~~\n```\n# B\n~~~\n", "# C\nc\n"}},
		{"a heading needs a space after its hashes", chunker.Markdown, 100, []string{"# A\n#B\n####### C\n"}},
		{"front matter is no heading", chunker.Markdown, 100,
			[]string{"---\n# by hand\ntitle: x\nday: 1\n---\n# A\na\n", "# B\nb\n"}},
		{"a heading goes with what follows", chunker.Markdown, 30,
			[]string{"aaaa aaaa aaaa aaaa\n\n", "# H\n\nbbbb bbbb bbbb bbbb\n"}},
		{"a heading that nothing follows stays with what is before", chunker.Markdown, 60,
			[]string{"# A\naaaa aaaa\n\n# B\n"}},
		{"headings that follow each other stay together", chunker.Markdown, 30,
			[]string{"# A\na\n", "# B\n## C\n### D\nd\n"}},
		{"a fence is kept whole", chunker.Markdown, 40,
			[]string{"some words before\n\n", "```\nlet a = 1\n\nlet b = 2\n```\n\n", "and some words after it\n"}},
		{"a table is kept whole", chunker.Markdown, 40,
			[]string{"some words before:\n", "| a | b |\n|---|---|\n| 1 | 2 |\n\n", "and some words after it\n"}},
		{"a table that just fits is kept whole", chunker.Markdown, 40,
			[]string{"aaaa aaa\n\n| a | b |\n|---|---|\n| 1 | 2 |\n", "\nbbbb bbbb bbbb bbbb\n"}},
		{"a fence that is too long is cut at a line", chunker.Markdown, 40,
			[]string{"```\naaaa aaaa aaaa\nbbbb. Bbb bbbb\n", "cccc cccc cccc cccc\n```\n"}},
		{"a fence that is too long anyway leaves no short chunk before it", chunker.Markdown, 40,
			[]string{"aaaa aa\n\n```\nbbbb bbbb bbbb\n", "cccc cccc cccc cccc\ndddd dddd\n```\n"}},
		{"a long fence that is never closed is cut at a line", chunker.Markdown, 40,
			[]string{"```\naaaa aaaa aaaa\nbbbb. Bbb bbbb\n", "cccc cccc cccc cccc\ndddd\n"}},
		{"a long heading that nothing follows is not left alone", chunker.Markdown, 60,
			[]string{strings.Repeat("aaaa ", 10), "aaaa\n# A long heading here\n"}},
		{"a table that is too long is cut at a row", chunker.Markdown, 40,
			[]string{"| a | b |\n|---|---|\n| 1 | 2 |\n| 3 | 4 |\n", "| 5 | 6 |\n| 7 | 8 |\n"}},
		{"a list is cut at an item", chunker.Markdown, 30, []string{"- one item. Yes.\n", "- another item. Also.\n"}},
		{"a function stays whole", chunker.Code, 40,
			[]string{"var a = 1\n\nvar b = 2\n\n", "func f() {\n\tg()\n\n\th()\n}\n"}},
		{"a comment stays with what follows", chunker.Code, 40,
			[]string{"var a = 1\nvar bb = 22\n\n", "// f does it.\nfunc f() {\n}\n"}},
		{"a comment before a blank line does too", chunker.Code, 40,
			[]string{"var a = 1\nvar bb = 22\n\n", "// Section.\n\nfunc f() {\n\tg()\n}\n"}},
		{"a function that is too long is cut at a blank line", chunker.Code, 40,
			[]string{"func f() {\n\taaaaa()\n\tbbbbb()\n\n", "\tccccc()\n\tddddd()\n}\n"}},
		{"a long comment is cut at a line", chunker.Code, 40,
			[]string{"// aaaa aaaa aaaa\n// bbbb. Bbb bb\n", "// cccc cccc cccc cccc\n"}},
		{"a bracket stays with what it closes", chunker.Code, 40,
			[]string{"func f() {\n\tif bbbb {\n", "\t\tcccccccccccc()\n\t}\n\tddddddddd()\n}\n"}},
		{"then at the shallowest line", chunker.Code, 40,
			[]string{"{\n  \"a\": {\n    \"b\": 1,\n  },\n", "  \"c\": {\n    \"d\": 222222,\n  }\n}\n"}},
		{"a paragraph stays whole", chunker.Prose, 40,
			[]string{"One. Two. Three is here.\n\n", "Four is a paragraph. Five.\n"}},
		{"a long paragraph is cut at a sentence, though lines are wrapped", chunker.Prose, 40,
			[]string{"This is a sentence that\nis over. ", "Then\nit goes on for some time here.\n"}},
		{"a long sentence is cut at a line", chunker.Prose, 40,
			[]string{"this is a sentence that\n", "never comes to its end and\n"}},
		{"a long line is cut at a word", chunker.Prose, 20, []string{"these are some ", "words on a line"}},
		{"a long word is cut at a rune", chunker.Prose, 10, []string{"ééééé", "ééééé", "éééé"}},
		{"Chinese is cut at a sentence", chunker.Prose, 30, []string{"我喜欢读书。", "他每天都在写作。"}},
		{"rows stay whole", chunker.Rows, 30,
			[]string{"a,b\n1,\"x\ny\"\n2,\"xx\nyy\"\n3,z\n", "4,\"zzzz\n\nzzzzz\"\n5,yyyy\n"}},
		{"JSON lines stay whole", chunker.Rows, 30, []string{"{\"a\": 1}\n{\"b\": [1, 2]}\n", "{\"c\": \"text, text\"}\n"}},
		{"an odd quote does not join rows forever", chunker.Rows, 30,
			[]string{"a,b\n1,5\"\n2,yyyy\n3,z\n4,zz\n", "5,zzz\n6,zzzz\n7,zzzzz\n"}},
		{"a short rest is balanced", chunker.Prose, 40, []string{"aaaa bbbb cccc dddd eeee ", "ffff gggg hhhh iiii"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			text := strings.Join(c.want, "")
			got := bodies(text, chunker.Options{Kind: c.kind, SizeTokens: c.size, Count: bytes})
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("bodies of %q at %d bytes (-want +got):\n%s", text, c.size, diff)
			}
		})
	}
}

func TestSplitNamesWhatABodyStandsUnder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		kind chunker.Kind
		text string
		want []string
	}{
		{"nothing before the first heading", chunker.Markdown, "text that is there, and fills a chunk\n# A\na\n",
			[]string{"", "A"}},
		{"the path", chunker.Markdown, "# A #\n## B\n### C ##\naaaa aaaa aaaa\n## D\ndddd dddd dddd dddd dddd\n",
			[]string{"A", "A > D"}},
		{"a level that is left out", chunker.Markdown, "# A\naaaa aaaa aaaa aaaa aaaa aaaa\n### C\ncccc cccc cccc\n",
			[]string{"A", "A > C"}},
		{"a section that goes on", chunker.Markdown, "# A\naaaa aaaa aaaa aaaa aaaa aaaa\n\nbbbb bbbb bbbb bbbb bbbb\n",
			[]string{"A", "A"}},
		{"a hash after a cut in a line is no heading", chunker.Markdown,
			strings.Repeat("aaaa ", 8) + "# b cc dd ee ff gg hh\n", []string{"", ""}},
		{"the header row", chunker.Rows, "id,name\r\n1,aaaaaaaaaaaa\r\n2,bbbbbbbbbbbbb\r\n3,c\r\n",
			[]string{"id,name", "id,name"}},
		{"a header of tabs, after a byte order mark", chunker.Rows, "\ufeffid\tname\n1\taaaaaaaaaaaaa\n2\tbbbbbbbbbbbbbb\n",
			[]string{"id\tname", "id\tname"}},
		{"no header where the first row is data", chunker.Rows, "1,aaaaaaaaaaaaaaaaaaaaa\n2,bbbbbbbbbbbbbbbbbb\n",
			[]string{"", ""}},
		{"no header in a log", chunker.Rows, "2024-01-01 10:00:00,123 INFO a\n2024-01-01 10:00:00,124 INFO b\n",
			[]string{"", ""}},
		{"no header in JSON lines", chunker.Rows, "{\"a\": 1, \"b\": \"aaaaaaaaa\"}\n{\"a\": 2, \"b\": \"bbbbbbbb\"}\n",
			[]string{"", ""}},
		{"nothing in code", chunker.Code, "# A\naaaa aaaa aaaa aaaa\n\n# B\nbbbb bbbb bbbb bbbb bbbb\n", []string{"", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, chunk := range chunker.Split(c.text, chunker.Options{Kind: c.kind, SizeTokens: 40, Count: counts["bytes"]}) {
				got = append(got, chunk.Heading)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("headings of %q (-want +got):\n%s", c.text, diff)
			}
		})
	}
}

func TestSplitOverlapsFromALineOrAWord(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		kind chunker.Kind
		text string
		want string // the overlap of the second chunk
	}{
		{"from a line", chunker.Prose, "aaaa aaaa aaaa aaaa\nbbbb bbbb bbb\n\ncccc cccc cccc cccc\n", "bbbb bbbb bbb\n\n"},
		{"from a word", chunker.Prose, "aaaa aaaa aaaa aaaa aaaa aaaa bbbb bbb\n\ncccc cccc cccc cccc\n",
			"aaaa bbbb bbb\n\n"},
		{"from anywhere in a long word", chunker.Prose, strings.Repeat("a", 60), strings.Repeat("a", 15)},
		{"not across a heading", chunker.Markdown, "# T\n## A\naaaa aaaa aaaa\n## B\nbbbb bbbb bbbb bbbb\n", ""},
		{"whole rows", chunker.Rows, "k,v\n1,aaaaaaaaa\n2,bbbbbbbbb\n3,cccc\n4,dddddddd\n", "3,cccc\n"},
		{"no part of a row", chunker.Rows, "k,v\n1,aaaaaaaaa\n2,bbbbbbbbbbbbbbbbbbb\n3,ccccccccccc\n", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			chunks := chunker.Split(c.text, chunker.Options{Kind: c.kind, SizeTokens: 40, OverlapTokens: 15,
				Count: counts["bytes"]})
			if len(chunks) != 2 {
				t.Fatalf("Split(%q) = %d chunks, want 2: %+v", c.text, len(chunks), chunks)
			}
			if got := chunks[1].Text[:chunks[1].OverlapBytes]; got != c.want {
				t.Errorf("overlap in %q = %q, want %q", c.text, got, c.want)
			}
		})
	}
}

// documents generates the parts of Markdown texts: short headings, fences, tables and paragraphs.
func documents() *rapid.Generator[[]string] {
	words := func(least, most int) *rapid.Generator[string] {
		return rapid.Map(rapid.IntRange(least, most), func(n int) string { return strings.Repeat("word ", n) })
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 5).Draw(t, "part") {
		case 0, 1:
			return strings.Repeat("#", rapid.IntRange(1, 4).Draw(t, "level")) + " Title\n\n"
		case 2:
			return "```\n" + strings.Repeat("# code\n\n", rapid.IntRange(1, 5).Draw(t, "lines")) + "```\n\n"
		case 3:
			return "| a | b |\n|---|---|\n" + strings.Repeat("| 1 | 2 |\n", rapid.IntRange(1, 6).Draw(t, "rows")) + "\n"
		default:
			return words(1, 40).Draw(t, "paragraph") + "\n\n"
		}
	}), 1, 30)
}

func TestSplitOfMarkdownKeepsItsStructure(t *testing.T) {
	t.Parallel()
	const size = 120
	rapid.Check(t, func(t *rapid.T) {
		parts := documents().Draw(t, "parts")
		text := strings.Join(parts, "")
		chunks := chunker.Split(text, chunker.Options{Kind: chunker.Markdown, SizeTokens: size, Count: counts["bytes"]})
		starts := make(map[int]bool)
		for _, c := range chunks {
			starts[c.StartByte+c.OverlapBytes] = true
		}
		pos, headings, headed := 0, 0, false
		for i, part := range parts {
			heading, afterHeading := part[0] == '#', i > 0 && parts[i-1][0] == '#'
			switch {
			case strings.HasPrefix(part, "# ") && headed && !afterHeading && !allHeadings(parts[i:]) && !starts[pos]:
				t.Fatalf("no chunk starts with the top-level section at %d of %q", pos, text)
			// A chunk full of headings may end behind a heading.
			case !heading && afterHeading && starts[pos] && headings < size:
				t.Fatalf("a chunk ends between a heading and what follows it at %d of %q", pos, text)
			case (part[0] == '`' || part[0] == '|') && !afterHeading:
				// The blank line after the part may be cut off.
				for inside := pos + 1; inside < pos+len(part)-1; inside++ {
					if starts[inside] {
						t.Fatalf("%q is torn at %d of %q", part, inside, text)
					}
				}
			}
			headed = headed || heading
			pos += len(part)
			if headings += len(part); !heading {
				headings = 0
			}
		}
	})
}

// allHeadings reports whether all parts are headings.
func allHeadings(parts []string) bool {
	for _, part := range parts {
		if part[0] != '#' {
			return false
		}
	}
	return true
}
