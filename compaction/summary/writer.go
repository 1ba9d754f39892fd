package summary

import (
	"time"

	"github.com/loci-memory/loci/compaction/clip"
	"github.com/loci-memory/loci/compaction/plan"
	"github.com/loci-memory/loci/compaction/prose"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/redact"
)

// MaxModelCalls bounds the model calls for one summary: one of the agent's own model; one of another model each for the
// whole, the clamped and the cut transcript; and one more after a rejected answer. If a Summarizer repeats a failed
// call, that counts once.
const MaxModelCalls = 5

// Patience bounds the time of all model calls for one summary, unless the Model sets another bound. After that the
// summary is extracted.
const Patience = 5 * time.Minute

// unknownRoom is the size in tokens of a second transcript, if the first was too large for a model with an unknown
// window. Letta: 48,000 bytes.
const unknownRoom = 12_000

// margin is the factor by which a provider's count may exceed ours. It is used until the provider has told its count.
const margin = 1.2

// writer makes one summary.
type writer struct {
	e        clip.Evicted
	s        plan.Settings
	m        *Model
	budget   int // tokens of the text, without quotations
	quoted   []prose.Quotation
	accepted int // tokens of the answer that was accepted; 0: none
	reserved int // tokens of e's budget for quotations

	quotedChars int    // characters of the settings' clip_chars for quotations; s has the rest
	previous    string // text of the previous summary
	entries     []prose.Entry
	flat        string // text of the entries without line ends; empty until echoes needs it
	must        prose.MustMention
	found       *extraction      // in everything that is summarized; nil until needed
	cut         []recall.Message // messages that the last transcript left out

	window int     // tokens of the model's window; 0 if unknown
	scale  float64 // the model's tokens per token of ours
	sent   int     // tokens, by our count, of the smallest request that was too large
	read   int     // most tokens that the provider counted of a request that it seemed to cut

	maxCalls int // most calls of the model
	dropped  int // oldest rounds that the last transcript left out
	gap      int // tokens by which the last request was too large; 0: unknown

	asked                      string // the last message of the last request
	modelCalls, prompt, output int
	why, detail                string // the last failure, for the organization and for the operator
}

func (w *writer) from() int64 { return w.e.Messages[0].Seq }

func (w *writer) to() int64 { return w.e.Messages[len(w.e.Messages)-1].Seq }

// stage is a way of asking a model. make returns nil if the way does not apply.
type stage struct {
	how   clip.How
	make  func() []chat.Message // nil: in parts
	parts int                   // at most
}

func (w *writer) redacted(text string) string {
	if w.m != nil && w.m.Redact != nil {
		return prose.Clean(w.m.Redact(text))
	}
	return redact.New(nil, redact.Options{}).Redact(text)
}

// Staged is the way in which a model wrote a summary from its own summaries of parts.
const Staged clip.How = "staged"
