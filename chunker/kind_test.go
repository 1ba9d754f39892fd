package chunker_test

import (
	"testing"

	"github.com/loci-memory/loci/chunker"
)

func TestKindOfGoesByNameThenByMediaType(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, mediaType string
		want            chunker.Kind
	}{
		{"README.md", "text/plain", chunker.Markdown},
		{"notes.MARKDOWN", "", chunker.Markdown},
		{"manual.rst", "text/plain", chunker.Markdown},
		{"page.html", "text/html", chunker.Markdown},
		{"page", "text/html; charset=utf-8", chunker.Markdown},
		{"page", "application/xhtml+xml", chunker.Markdown},
		{"main.go", "text/plain", chunker.Code},
		{"dir/lib.RS", "", chunker.Code},
		{"Makefile", "text/plain", chunker.Code},
		{"Dockerfile", "", chunker.Code},
		{"requirements.txt", "text/plain", chunker.Code},
		{".gitignore", "", chunker.Code},
		{"data.json", "application/json", chunker.Code},
		{"conf.yaml", "", chunker.Code},
		{"conf.toml", "", chunker.Code},
		{"conf.ini", "", chunker.Code},
		{"feed.xml", "text/xml", chunker.Code},
		{"feed", "application/atom+xml", chunker.Code},
		{"data", "application/vnd.api+json", chunker.Code},
		{"script", "text/x-python", chunker.Code},
		{"events.jsonl", "application/json", chunker.Rows},
		{"events.ndjson", "", chunker.Rows},
		{"people.csv", "text/plain", chunker.Rows},
		{"people.tsv", "", chunker.Rows},
		{"server.log", "text/plain", chunker.Rows},
		{"people", "text/csv; header=present", chunker.Rows},
		{"people", "text/tab-separated-values", chunker.Rows},
		{"tale.txt", "text/plain", chunker.Prose},
		{"LICENSE", "text/plain", chunker.Prose},
		{"tale", "text/plain; charset=utf-8", chunker.Prose},
		{"tale.unknown", "", chunker.Prose},
		{"", "", chunker.Prose},
		{"tale", ";;;", chunker.Prose},
	} {
		if got := chunker.KindOf(c.name, c.mediaType); got != c.want {
			t.Errorf("KindOf(%q, %q) = %q, want %q", c.name, c.mediaType, got, c.want)
		}
	}
}

func TestEstimateFollowsItsRule(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"":                                  0,
		"a":                                 1,
		"The quick brown fox jumps over it": 7,
		"2024-01-02 10:11:12":               10,
		"日本語":                               3,
		"👍":                                 2,
		"привет":                            3,
		"        ":                          1,
	} {
		if got := chunker.Estimate(text); got != want {
			t.Errorf("Estimate(%q) = %d, want %d", text, got, want)
		}
	}
}
