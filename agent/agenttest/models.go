package agenttest

import (
	"context"
	"time"

	"github.com/loci-memory/loci/compaction/llm"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/compaction/summary"
)

// Models gives a server the model of a provider for its summaries, whichever model it names. It may take so long for
// one; between two attempts nobody waits.
func Models(p *llmtest.Provider, patience time.Duration) (func(context.Context, string) *summary.Model, error) {
	client, err := llm.New(llm.Config{BaseURL: p.BaseURL(), Model: "summariser", Window: p.Window,
		FirstPause: time.Nanosecond})
	return func(context.Context, string) *summary.Model {
		return &summary.Model{Summarizer: client, Name: client.Model(), Window: client.Window(), Patience: patience,
			List: client.Models}
	}, err
}
