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

// MaxModelCalls bounds the calls of a model for one summary: the agent's own model once, another with the whole, the
// clamped and the cut transcript, and once again for an answer that is rejected. A call that a Summarizer repeats
// because it failed counts once.
const MaxModelCalls = 5

// Patience bounds all calls of a model for one summary, unless the Model sets another bound. Past it the summary is
// extracted.
const Patience = 5 * time.Minute

// unknownRoom is how many tokens of a transcript are sent if all of it was too large for a model whose window is
// unknown. Letta: 48,000 bytes.
const unknownRoom = 12_000

// margin is the factor by which a provider may count more tokens than we do, until it has told its count.
const margin = 1.2

// writer makes one summary.
type writer struct {
	e        clip.Evicted
	s        plan.Settings
	m        *Model
	budget   int // tokens of the text, without what it quotes of the user
	quoted   []prose.Quotation
	reserved int // tokens of the budget of e for these

	quotedChars int    // of the settings' clip_chars for these; s has the rest
	previous    string // text of the summary before
	entries     []prose.Entry
	flat        string // text of the entries without line ends; empty until echoes needs it
	must        prose.MustMention
	found       *extraction      // in all that is summarized; nil until it is needed
	cut         []recall.Message // messages that the last transcript left out

	window int     // tokens of the model's window; 0 if unknown
	scale  float64 // the model's tokens for one of ours
	sent   int     // tokens, by our count, of the smallest request that was too large
	read   int     // tokens that the provider read of a request of which it seemed to leave out a part

	maxCalls int // of the model
	dropped  int // oldest rounds that the last transcript left out
	gap      int // tokens by which the last request was too large; 0: unknown

	asked                      string // the last message of the last request
	modelCalls, prompt, output int
	why, detail                string // of the last failure: for the organization, and for the operator
}

func (w *writer) from() int64 { return w.e.Messages[0].Seq }

func (w *writer) to() int64 { return w.e.Messages[len(w.e.Messages)-1].Seq }

// stage is a way to ask a model; make returns nil if it does not do.
type stage struct {
	how  clip.How
	make func() []chat.Message
}

func (w *writer) redacted(text string) string {
	if w.m != nil && w.m.Redact != nil {
		return prose.Clean(w.m.Redact(text))
	}
	return redact.New(nil, redact.Options{}).Redact(text)
}

// Staged is the way in which a model wrote a summary from those of parts, which it wrote before.
const Staged clip.How = "staged"
