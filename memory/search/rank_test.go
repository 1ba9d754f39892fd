package search_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/loci-memory/loci/memory/search"
	"github.com/loci-memory/loci/recall"
)

func hit(kind search.Kind, score float64, text string) search.MemoryFound {
	return search.MemoryFound{Kind: kind, Score: score, Text: text}
}

func texts(hits []search.MemoryFound) (all []string) {
	for _, h := range hits {
		all = append(all, h.Text)
	}
	return all
}

// Hits of several memories are ranked by their share of the query's words, then by their rank in their memory; equal
// hits are in the order of the kinds.
func TestHitsOfSeveralMemoriesAreRanked(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		query    search.Query
		memories [][]search.MemoryFound
		want     []string
	}{
		{"more words of the query are better than a higher score", search.Query{Text: "red fox", Limit: 9},
			[][]search.MemoryFound{{hit(search.Passage, 0.9, "a fox")}, {hit(search.Message, 0.1, "a red fox")}},
			[]string{"a red fox", "a fox"}},
		{"of the same words, a better rank is better", search.Query{Text: "fox", Limit: 9},
			[][]search.MemoryFound{{hit(search.Passage, 0.5, "fox 1"), hit(search.Passage, 0.4, "fox 2")},
				{hit(search.Message, 0.1, "fox 3")}}, []string{"fox 1", "fox 3", "fox 2"}},
		{"equal hits are in the order of the kinds", search.Query{Text: "fox", Limit: 9},
			[][]search.MemoryFound{{hit(search.Message, 0.9, "fox m")}, {hit(search.Block, 0.9, "fox b")},
				{hit(search.File, 0.9, "fox f")}}, []string{"fox b", "fox f", "fox m"}},
		{"by meaning, the score decides", search.Query{Text: "red fox", Limit: 9, Mode: recall.ByMeaning},
			[][]search.MemoryFound{{hit(search.Passage, 0.3, "a red fox")}, {hit(search.Message, 0.8, "an animal")}},
			[]string{"an animal", "a red fox"}},
		{"at most as many as the limit", search.Query{Text: "fox", Limit: 2},
			[][]search.MemoryFound{{hit(search.Passage, 1, "fox 1"), hit(search.Passage, 1, "fox 2"),
				hit(search.Passage, 1, "fox 3")}}, []string{"fox 1", "fox 2"}},
		{"none", search.Query{Text: "fox", Limit: 2}, nil, nil},
	} {
		if got := texts(c.query.Ranked(c.memories...)); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

// The best hit has the highest score that a memory gave, and the others less. A text ends after 1,500 bytes, between
// two characters.
func TestScoresAndTextsOfHits(t *testing.T) {
	t.Parallel()
	long := "fox " + strings.Repeat("ä", 800)
	got := search.Query{Text: "fox", Limit: 9}.Ranked([]search.MemoryFound{hit(search.Passage, 0.4, long)},
		[]search.MemoryFound{hit(search.Message, 0.6, "a fox"), hit(search.Message, 0.2, "no match")})
	if len(got) != 3 || got[0].Score != 0.6 || got[1].Score != 0.6 || got[2].Score >= 0.6 || got[2].Score <= 0 {
		t.Errorf("got the scores %v, %v, %v, want 0.6 twice, and less", got[0].Score, got[1].Score, got[2].Score)
	}
	if text := got[0].Text; text != long[:1_500] || search.MaxTextBytes != 1_500 {
		t.Errorf("got a text of %d bytes", len(text))
	}
	if odd := (search.Query{Text: "fox", Limit: 9}).Ranked([]search.MemoryFound{hit(search.Passage, 1, "x"+long)}); len(
		odd[0].Text) != 1_499 {
		t.Errorf("a text that would end within a character has %d bytes, want 1499", len(odd[0].Text))
	}
}

// A near layer knows the answer if a text has all of at least two words, or the query names its path.
func TestANearLayerKnowsTheAnswer(t *testing.T) {
	t.Parallel()
	file := search.MemoryFound{Text: "The vet is Dr. Stein", Place: search.FoundPlace{Path: "/memories/zoo.md"}}
	block := search.MemoryFound{Text: "Owns a zebra", Place: search.FoundPlace{Label: "human"}}
	field := search.MemoryFound{Text: "Move the zebra", Place: search.FoundPlace{Field: "task"}}
	for _, c := range []struct {
		name, query string
		hit         search.MemoryFound
		want        string
	}{
		{"all words of two", "zebra owns", block, "human"},
		{"the label is one of the words", "human zebra", block, "human"},
		{"a word is missing", "zebra owns horse", block, ""},
		{"a single word is too few", "zebra", block, ""},
		{"an entry of working memory is named by its field", "move zebra", field, "task"},
		{"the path is in the query", "show me /memories/zoo.md please", file, "/memories/zoo.md"},
		{"the name with its extension is in the query", "what does zoo.md say?", file, "/memories/zoo.md"},
		{"the name without it is not enough", "zoo", file, ""},
	} {
		if got := (search.Query{Text: c.query}).Known(c.hit); got != c.want {
			t.Errorf("%s: %q: got %q, want %q", c.name, c.query, got, c.want)
		}
	}
}

func TestATextNamesAPath(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text, of string
		want     bool
	}{
		{"see /memories/a.md.", "/memories/a.md", true},
		{"see a.md", "/memories/a.md", true},
		{"(a.md)", "/memories/a.md", true},
		{"see ba.md", "/memories/a.md", false},
		{"see a.mdx", "/memories/a.md", false},
		{"see a.md-old", "/memories/a.md", false},
		{"see _a.md", "/memories/a.md", false},
		{"see äa.md", "/memories/a.md", false},
		{"aa.md, and then a.md", "/memories/a.md", true},
		{"the word notes", "/memories/notes", false},
		{"/memories/notes", "/memories/notes", true},
		{"the word .hidden", "/memories/.hidden", false},
		{"anything", "", false},
	} {
		if got := search.Names(c.text, c.of); got != c.want {
			t.Errorf("%q names %q: got %v, want %v", c.text, c.of, got, c.want)
		}
	}
}

// Hits without a word of the query are dropped. The others are ordered by their share of the query's words; a hit in
// another spelling counts less.
func TestBestHits(t *testing.T) {
	t.Parallel()
	q := search.Query{Text: "red fox", Limit: 2, Explain: true}
	got := q.Best(hit(search.Block, 0, "a fox"), hit(search.Block, 0, "a bear"), hit(search.Block, 0, "a fox that is red"),
		search.MemoryFound{Text: "something", Place: search.FoundPlace{Label: "red"}})
	if want := []string{"a fox that is red", "a fox"}; !slices.Equal(texts(got), want) {
		t.Fatalf("got %q, want %q", texts(got), want)
	}
	if got[0].Score != 1 || math.Abs(got[1].Score-0.5) > 1e-9 || got[1].Explanation == nil ||
		!slices.Equal(got[1].Explanation.Terms, []string{"fox"}) {
		t.Errorf("got the scores %v and %v, with %+v", got[0].Score, got[1].Score, got[1].Explanation)
	}
}

// The part of a text around the line with the most words of the query has at most 1,500 bytes, and whole lines.
func TestTheBestLinesOfAText(t *testing.T) {
	t.Parallel()
	q := search.Query{Text: "red fox"}
	line := strings.Repeat("x", 299)
	many := strings.Repeat(line+"\n", 10)
	for _, c := range []struct {
		name, text  string
		first, last int
	}{
		{"a short text is whole", "a\nred\nb\n", 1, 3},
		{"the best line of a long one, with as much around it as fits", many + "the red fox\n" + many, 9, 13},
		{"the first of equal lines", "red\n" + many + "red\n", 1, 5},
		{"a line with more words of the query", "red\n" + many + "red fox\n", 8, 12},
		{"without a word of the query, the beginning", many, 1, 5},
		{"a text without lines", "", 1, 1},
	} {
		part, first, last := q.BestLines(c.text)
		lines := strings.Split(strings.TrimRight(c.text, "\n"), "\n")
		if first != c.first || last != c.last || part != strings.Join(lines[first-1:last], "\n") ||
			len(part) > search.MaxTextBytes {
			t.Errorf("%s: got the lines %d to %d with %d bytes, want %d to %d", c.name, first, last, len(part), c.first,
				c.last)
		}
	}
}
