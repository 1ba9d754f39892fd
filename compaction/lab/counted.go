package lab

import (
	"fmt"
	"math"

	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/recall"
)

// Counts compares Loci's estimate of a session with the counts of its provider. Both are of what came between the first
// and the last counted prompt, without the system prompt and the tools, which a recording may lack.
type Counts struct {
	Prompts   int `json:"prompts"` // that the provider counted, and whose growth was compared
	Estimated int `json:"estimated_tokens"`
	Counted   int `json:"counted_tokens"`
	Beside    int `json:"beside_tokens"` // of the first prompt, beside its messages: the system prompt and the tools
}

// Off returns by which share the estimate was too high; negative if it was too low.
func (c Counts) Off() float64 { return float64(c.Estimated)/float64(max(c.Counted, 1)) - 1 }

// Text says in a sentence how far the estimate was off.
func (c Counts) Text() string {
	how := "too high"
	if c.Off() < 0 {
		how = "too low"
	}
	return fmt.Sprintf("The provider's counts of %d prompts are used: %d tokens, where Loci estimated %d, %.0f %% %s. "+
		"Each of its prompts had %d tokens beside the messages, for the system prompt and the tools", c.Prompts, c.Counted,
		c.Estimated, math.Abs(100*c.Off()), how, c.Beside)
}

// Bounds of counts.
const (
	leastGrowth           = 100       // tokens from one count to the next; of less, the words around messages say more
	leastRatio, mostRatio = 0.25, 4.0 // of a count to the estimate; others count other messages
	leastCompared         = 300       // tokens in all, from which on the counts are used
	leastMessage          = 1
)

// span is the messages between two counted prompts.
type span struct {
	from, to           int // indexes of messages: from … to-1
	estimated, counted int // tokens
}

// factor returns how many tokens the provider counts for each estimated one.
func (s span) factor() float64 { return float64(s.counted) / float64(max(s.estimated, 1)) }

// count gives messages the tokens that the provider counted for them, where the recording has counts. Of messages
// between two counts, each gets its share by the estimate; other messages get the session's share. It returns nil if
// there are too few counts.
func count(messages []recall.Message, prompts []transcript.Prompt) *Counts {
	spans, all := spansOf(messages, prompts)
	if all.estimated < leastCompared {
		return nil
	}
	factors := make([]float64, len(messages))
	for i := range factors {
		factors[i] = all.factor()
	}
	for _, s := range spans {
		for i := s.from; i < s.to; i++ {
			factors[i] = s.factor()
		}
	}
	before := 0
	for i := range messages {
		m := &messages[i]
		m.Tokens = max(int(math.Round(factors[i]*float64(m.Tokens))), leastMessage)
		if i < prompts[0].Answer {
			before += m.Tokens
		}
	}
	return &Counts{Prompts: len(spans) + 1, Estimated: all.estimated, Counted: all.counted,
		Beside: max(prompts[0].Tokens-before, 0)}
}

// spansOf returns the messages between two counted prompts, where the count fits the estimate, and their sums.
func spansOf(messages []recall.Message, prompts []transcript.Prompt) (spans []span, all span) {
	first, estimated, at := 0, 0, 0 // the prompt from which a span begins, and the tokens since then
	for n, p := range prompts {
		for ; at < min(p.Answer, len(messages)); at++ {
			estimated += messages[at].Tokens
		}
		s := span{prompts[first].Answer, p.Answer, estimated, p.Tokens - prompts[first].Tokens}
		if n > 0 && estimated < leastGrowth && s.counted >= 0 {
			continue
		}
		if f := s.factor(); n > 0 && f >= leastRatio && f <= mostRatio {
			spans = append(spans, s)
			all.estimated += s.estimated
			all.counted += s.counted
		}
		first, estimated = n, 0
	}
	return spans, all
}
