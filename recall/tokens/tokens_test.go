package tokens_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/loci-memory/loci/recall/tokens"
)

func TestEstimate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{"": 0, "a": 1, "the": 1, "the world": 2, "1234": 5, "日本語": 4, "\xff": 1} {
		if got := tokens.Estimate(text); got != want {
			t.Errorf("Estimate(%q) = %d, want %d", text, got, want)
		}
	}
}

// The expected counts are from OpenAI's own tokenizer. The two vocabularies differ on this text.
func TestModelsAreCountedByTheirVocabulary(t *testing.T) {
	t.Parallel()
	const text = "お誕生日おめでとう" // from OpenAI's cookbook
	const o200k, cl100k, estimate = 8, 9, 12
	counter := tokens.New()
	for model, want := range map[string]int{
		"openai/gpt-4o": o200k, "gpt-4o-mini": o200k, "openai/GPT-4.1-nano": o200k, "openai/o1": o200k,
		"openai/o3-mini": o200k, "openai/gpt-5": o200k,
		"azure/chatgpt-4o-latest": o200k, "ft:gpt-4o-mini:acme": o200k, "ollama/gpt-oss:20b": o200k,
		"openrouter/openai/gpt-4o": o200k,
		"openai/gpt-4-turbo":       cl100k, "gpt-4": cl100k, "openai/gpt-3.5-turbo": cl100k, "azure/gpt-35-turbo": cl100k,
		"anthropic/claude-sonnet-4": estimate, "google/gemini-2.5-pro": estimate, "acme/o1x": estimate,
		"acme/gpt-4x": estimate, "": estimate,
	} {
		if got := counter.Count(model, text); got != want {
			t.Errorf("Count(%q) = %d, want %d", model, got, want)
		}
	}
}

// A remembered count equals a fresh one, also with concurrent callers.
func TestCountsAreRemembered(t *testing.T) {
	t.Parallel()
	counter := tokens.New()
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range 12_000 { // more than one half remembers
				text := fmt.Sprintf("message %d says: %s", i, strings.Repeat("x", 64))
				if i%100 != 0 {
					continue
				}
				var none *tokens.Counter
				if got, want := counter.Count("gpt-4o", text), none.Count("gpt-4o", text); got != want {
					t.Errorf("%q: got %d, want %d", text, got, want)
				}
			}
		})
	}
	group.Wait()
}

// A count is remembered for its vocabulary alone.
func TestARememberedCountIsThatOfTheVocabulary(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("お誕生日おめでとう\n", 3)
	var none *tokens.Counter
	counter, o200k, cl100k := tokens.New(), none.Count("gpt-4o", text), none.Count("gpt-4", text)
	if o200k == cl100k {
		t.Fatalf("both vocabularies count %d", o200k)
	}
	for range 2 {
		if a, b := counter.Count("gpt-4o", text), counter.Count("gpt-4", text); a != o200k || b != cl100k {
			t.Errorf("got %d and %d, want %d and %d", a, b, o200k, cl100k)
		}
	}
}

// A text counted in several pieces has as many tokens as when counted whole, except for one at each cut.
func TestCutsAreWorthLittle(t *testing.T) {
	t.Parallel()
	var counter *tokens.Counter
	for _, line := range []string{"A line of some words, and 12 numbers.\n", "word ", "日本語の行です。\n", "x",
		"\tif a[i] < b {\n\t\treturn\n\t}\n\n"} {
		const pieces = 9
		part := strings.Repeat(line, 32_000/len(line)) // fits into one piece
		one := counter.Count("gpt-4o", part)
		if got := counter.Count("gpt-4o", strings.Repeat(part, pieces)); got < pieces*one-2*pieces ||
			got > pieces*one+2*pieces {
			t.Errorf("%d times %q…: got %d tokens, want %d times %d", pieces, line, got, pieces, one)
		}
	}
}

// hostile are texts that a naive tokenizer needs quadratic time for.
func hostile(bytes int) map[string]string {
	return map[string]string{
		"letters": strings.Repeat("a", bytes), "capitals": strings.Repeat("A", bytes), "spaces": strings.Repeat(" ", bytes),
		"digits": strings.Repeat("7", bytes), "marks": strings.Repeat("=", bytes), "line ends": strings.Repeat("\n", bytes),
		"lines of nothing": strings.Repeat(" \n", bytes/2), "indented lines of nothing": strings.Repeat("\n\t", bytes/2),
		"letters of a script": strings.Repeat("ก", bytes/3),
	}
}

func TestHostileTextsAreCounted(t *testing.T) {
	t.Parallel()
	for name, text := range hostile(1 << 17) {
		if got := tokens.New().Count("gpt-4o", text); got < 1000 || got > len(text) {
			t.Errorf("%s: got %d tokens of %d bytes", name, got, len(text))
		}
	}
}

// BenchmarkHostile shows that the time per byte does not grow with the text.
func BenchmarkHostile(b *testing.B) {
	for _, bytes := range []int{64 << 10, 1 << 20} {
		for name, text := range hostile(bytes) {
			b.Run(fmt.Sprintf("%s/%d", name, bytes), func(b *testing.B) {
				b.SetBytes(int64(bytes))
				var none *tokens.Counter
				for b.Loop() {
					none.Count("gpt-4o", text)
				}
			})
		}
	}
}

// BenchmarkView counts 500 messages of about 600 characters each.
func BenchmarkView(b *testing.B) {
	texts := make([]string, 500)
	for i := range texts {
		texts[i] = strings.Repeat(fmt.Sprintf("Message %d is about tea, coffee and the weather in Zürich. ", i), 10)
	}
	for _, c := range []struct {
		name, model string
		counter     *tokens.Counter
	}{{"estimated", "anthropic/claude", nil}, {"counted", "gpt-4o", nil}, {"remembered", "gpt-4o", tokens.New()}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				for _, text := range texts {
					c.counter.Count(c.model, text)
				}
			}
		})
	}
}
