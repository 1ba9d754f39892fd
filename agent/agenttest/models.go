package agenttest

import (
	"context"
	"time"

	"github.com/loci-memory/loci/compaction/llm"
	"github.com/loci-memory/loci/compaction/llm/llmtest"
	"github.com/loci-memory/loci/compaction/summary"
)

// Models returns a function that gives a server a provider's model for its summaries, whichever model is named. A
// summary may take patience. There is no pause between attempts.
func Models(p *llmtest.Provider, patience time.Duration) (func(context.Context, string) *summary.Model, error) {
	client, err := llm.New(llm.Config{BaseURL: p.BaseURL(), Model: "summariser", Window: p.Window,
		FirstPause: time.Nanosecond})
	return func(context.Context, string) *summary.Model {
		return &summary.Model{Summarizer: client, Name: client.Model(), Window: client.Window(), Patience: patience,
			List: client.Models}
	}, err
}
