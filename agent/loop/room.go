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

// roomMakers are the settings by which a conversation is compacted whose prompt is too long for its provider, in order.
// The last leaves a summary of about 1,000 tokens: there is nothing to summarize after it.
var roomMakers = []string{`{}`, `{"mode":"all","clip_chars":4000}`}

// compactNext compacts the conversation whose prompt the provider found too long, though it fits by our count, by the
// next of some settings that makes it smaller. It reports whether there was one.
func (l *Loop) compactNext(ctx context.Context, org db.Org, c recall.Conversation, settings *[]string) (bool, error) {
	for len(*settings) > 0 {
		next := json.RawMessage((*settings)[0])
		*settings = (*settings)[1:]
		_, err := l.Agents.Compact(ctx, org, c, agent.CompactOptions{Settings: next})
		if err == nil || !errors.Is(err, db.ErrInvalid) { // which says that nothing gets smaller
			return err == nil, err
		}
	}
	return false, nil
}

// overflow is the fault of a provider that finds a prompt too long which cannot be made shorter.
type overflow struct {
	*model.Fault
	Prompt agent.StoredPrompt
}

// Unwrap returns the fault.
func (o *overflow) Unwrap() error { return o.Fault }

// Counts says what the prompt's tokens are, by our count.
func (o *overflow) Counts() string {
	t := o.Prompt.Tokens
	said := t.Summary + t.Messages
	return fmt.Sprintf("By Loci's count the prompt has %d tokens of a window of %d: %d of the system prompt, %d of "+
		"tools, and %d of the conversation, as far as it can be compacted. Set context_window_limit to what the model "+
		"takes, or shorten the largest part", t.Total, o.Prompt.Window,
		max(t.Estimated-t.Tools-said, 0), t.Tools, said)
}
