package lab_test

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loci-memory/loci/compaction/lab"
	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/compaction/policy"
)

// If a recording has what the provider counted, its own cost is known: with what a cache had and took.
func TestTheRecordedCostUsesWhatTheCacheHad(t *testing.T) {
	t.Parallel()
	const user = `{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"Hello?"}}`
	answer := func(uuid, parent string) string {
		return `{"type":"assistant","uuid":"` + uuid + `","parentUuid":"` + parent + `","sessionId":"s",` +
			`"message":{"id":"m","role":"assistant","content":[{"type":"text","text":"Hi."}],"usage":{"input_tokens":100000,` +
			`"cache_read_input_tokens":800000,"cache_creation_input_tokens":100000,"output_tokens":5}}}`
	}
	for name, text := range map[string]string{
		"Claude Code": strings.Join([]string{user, answer("a", "u"), answer("b", "a")}, "\n"),
		"a chat": `[{"role":"user","content":"Hello?"},{"role":"assistant","content":"Hi.","usage":{"input_tokens":100000,` +
			`"cache_read_input_tokens":800000,"cache_creation_input_tokens":100000}}]`,
		"Pi": `{"type":"session","id":"s","version":3}` + "\n" +
			`{"type":"message","id":"u","message":{"role":"user","content":"Hello?"}}` + "\n" +
			`{"type":"message","id":"a","parentId":"u","message":{"role":"assistant","content":[{"type":"text","text":"Hi."}],` +
			`"usage":{"input":100000,"output":5,"cacheRead":800000,"cacheWrite":100000}}}`,
		"no counts": `[{"role":"user","content":"Hello?"},{"role":"assistant","content":"Hi."}]`,
	} {
		sessions, err := transcript.Read(name, strings.NewReader(text))
		if err != nil || len(sessions) != 1 {
			t.Fatalf("%s: %d sessions, %v", name, len(sessions), err)
		}
		r, err := lab.Replay(t.Context(), sessions[0], lab.Settings{Window: 8000,
			Prices: policy.CachePrices{Input: 10, Read: 0.1, Write: 1.25}})
		if err != nil {
			t.Fatal(err)
		}
		if name == "no counts" {
			if r.Recorded != nil || r.RecordedText() != "–" {
				t.Errorf("%s: got %+v", name, r.Recorded)
			}
			continue
		}
		want := transcript.Usage{Answers: 1, Prompt: 1_000_000, Read: 800_000, Write: 100_000}
		if r.Recorded == nil || !cmp.Equal(want, r.Recorded.Usage) || math.Abs(r.Recorded.Cost-3.05) > 1e-9 {
			t.Errorf("%s: got %+v, want %+v for 3.05", name, r.Recorded, want)
		}
	}
}
