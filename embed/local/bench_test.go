package local

import (
	"strings"
	"testing"
)

// BenchmarkEmbed embeds a question of 10 pieces and chunks of 200, with each kernel of this processor, on one thread.
func BenchmarkEmbed(b *testing.B) {
	opened, err := Open()
	if err != nil {
		b.Fatal(err)
	}
	for _, k := range kernels() {
		e := &Encoder{model: opened.model, kernel: k, workspaces: &pool{}, threads: 1}
		for _, test := range []struct{ name, text string }{
			{"question", "what do I do when the disk is full?"},
			{"chunk", strings.Repeat("The harbour town lies between two rivers, and the market is held by the church. ", 11)},
		} {
			b.Run(k.name+"/"+test.name, func(b *testing.B) {
				for b.Loop() {
					if _, err := e.Embed(b.Context(), []string{test.text}); err != nil {
						b.Fatal(err)
					}
				}
				pieces := len(e.tokens.cut(test.text).pieces)
				b.ReportMetric(float64(pieces), "pieces")
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "texts/s")
			})
		}
	}
}
