package lab

import (
	"fmt"
	"math"
	"sync"

	"github.com/loci-memory/loci/compaction/lab/transcript"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
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
	leastScale            = 0.1       // of a meter
)

// span is the messages between two counted prompts.
type span struct {
	from, to           int // indexes of messages: from … to-1
	estimated, counted int // tokens
}

// factor returns how many tokens the provider counts for each estimated one.
func (s span) factor() float64 { return float64(s.counted) / float64(max(s.estimated, 1)) }

// meter counts texts as a session's provider does. Whole and shortened texts are counted alike, so that what a
// shortening saves is the difference of two counts. A nil meter returns Loci's estimate.
type meter struct {
	calibration tokens.Calibration
	scale       float64 // by which all counts of the session together are off by the calibration

	mu    sync.Mutex
	known map[string]int // tokens of texts of at least rememberBytes
}

// Bounds of the texts whose counts a meter remembers.
const (
	rememberBytes = 64
	remembered    = 20_000
)

// estimates composes texts by Loci's estimate.
var estimates *tokens.Counter

// count returns the tokens of a text.
func (m *meter) count(text string) int {
	if m == nil {
		return tokens.Estimate(text)
	}
	if len(text) < rememberBytes {
		return m.measure(text)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.known[text]
	if !ok {
		if len(m.known) >= remembered {
			clear(m.known)
		}
		n = m.measure(text)
		m.known[text] = n
	}
	return n
}

// measure is count without what is remembered.
func (m *meter) measure(text string) int {
	of := estimates.Compose("", text)
	return int(math.Ceil(m.scale * float64(m.calibration.Mean(of)) * float64(of.Total())))
}

// counter returns count for a view; nil if the view is to estimate.
func (m *meter) counter() func(string) int {
	if m == nil {
		return nil
	}
	return m.count
}

// weigh sets the tokens of messages.
func (m *meter) weigh(messages []recall.Message) {
	for i := range messages {
		messages[i].Tokens = beside(messages[i])
		for _, p := range messages[i].Content {
			messages[i].Tokens += m.count(p.Text) + m.count(p.Name) + m.count(p.Input)
		}
	}
}

// beside returns the tokens of a message that are no text.
func beside(m recall.Message) int {
	n := tokens.PerMessage
	for _, p := range m.Content {
		n += p.SealedTokens() + len(p.Images)*tokens.PerImage
	}
	return n
}

// composed returns the tokens of the texts of messages by class, as estimated, and those of what is no text.
func composed(messages []recall.Message) (of tokens.Composition, rest int) {
	for _, m := range messages {
		rest += beside(m)
		for _, p := range m.Content {
			of.Add(estimates.Compose("", p.Text))
			of.Add(estimates.Compose("", p.Name))
			of.Add(estimates.Compose("", p.Input))
		}
	}
	return of, rest
}

// calibrated returns a meter that counts a session's texts as its provider did, where the recording has counts: by the
// classes of the texts between two counts, and in all as many tokens as the provider. It returns nil if there are too
// few counts.
func calibrated(messages []recall.Message, prompts []transcript.Prompt) (*meter, *Counts) {
	spans, all := spansOf(messages, prompts)
	if all.estimated < leastCompared {
		return nil, nil
	}
	m := &meter{calibration: tokens.NewCalibration(""), scale: 1, known: map[string]int{}}
	for _, s := range spans {
		of, rest := composed(messages[s.from:s.to])
		m.calibration, _ = m.calibration.After(max(s.counted-rest, 0), of, "")
	}
	predicted, counted := 0.0, 0
	for _, s := range spans {
		of, rest := composed(messages[s.from:s.to])
		predicted += float64(m.calibration.Mean(of)) * float64(of.Total())
		counted += s.counted - rest
	}
	m.scale = max(float64(counted)/max(predicted, 1), leastScale)
	m.weigh(messages)
	before := 0
	for _, message := range messages[:min(prompts[0].Answer, len(messages))] {
		before += message.Tokens
	}
	return m, &Counts{Prompts: len(spans) + 1, Estimated: all.estimated, Counted: all.counted,
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
