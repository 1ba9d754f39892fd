package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// overflowSettings are settings for compacting a conversation if its prompt is too long for its provider. They are
// tried in order. The last one leaves a summary of about 1,000 tokens, so that nothing more can be summarized.
var overflowSettings = []string{`{}`, `{"mode":"all","clip_chars":4000}`}

// compactNext compacts a conversation if the provider found its prompt too long although it fits by our count. It uses
// the next of the settings that makes the conversation smaller, and reports whether there was one.
func (l *Loop) compactNext(ctx context.Context, org db.Org, c recall.Conversation, settings *[]string) (bool, error) {
	for len(*settings) > 0 {
		next := json.RawMessage((*settings)[0])
		*settings = (*settings)[1:]
		_, err := l.Agents.Compact(ctx, org, c, agent.CompactOptions{Settings: next})
		if err == nil || !errors.Is(err, db.ErrInvalid) { // ErrInvalid says that nothing gets smaller
			return err == nil, err
		}
	}
	return false, nil
}

// overflow is the fault of a provider that finds a prompt too long, if the prompt cannot be made shorter.
type overflow struct {
	*model.Fault
	Prompt agent.StoredPrompt
}

func (o *overflow) Unwrap() error { return o.Fault }

// Counts says how many tokens the prompt has by our count.
func (o *overflow) Counts() string {
	t := o.Prompt.Tokens
	said := t.Summary + t.Messages
	return fmt.Sprintf("By Loci's count the prompt has %d tokens of a window of %d: %d of the system prompt, %d of "+
		"tools, and %d of the conversation, as far as it can be compacted. Set context_window_limit to what the model "+
		"takes, or shorten the largest part", t.Total, o.Prompt.Window,
		max(t.Estimated-t.Tools-said, 0), t.Tools, said)
}
