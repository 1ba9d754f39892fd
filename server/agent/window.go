package agent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
)

// assumedWindow is the window, in tokens, of a model of which none is known, where one is needed: the largest of the tier of files that
// such a model has.
const assumedWindow = 32_768

// compactionSettings are an agent's, with what over, a JSON object, says in their place; over may be nil.
func (a Agent) compactionSettings(over []byte) (compaction.Settings, error) {
	own, err := compaction.ParseSettings(a.Settings.CompactionSettings, compaction.Defaults())
	if err != nil { // from before they were checked
		own = compaction.Defaults()
	}
	return compaction.ParseSettings(over, own)
}

// mergeCompaction is what is stored of settings that change those that an agent has; nil where they change nothing.
func mergeCompaction(own, change json.RawMessage) (json.RawMessage, error) {
	if change == nil {
		return nil, nil
	}
	merged, err := Agent{Settings: Settings{CompactionSettings: own}}.compactionSettings(change)
	if err != nil {
		return nil, err
	}
	return json.Marshal(merged)
}

// Compacting is how a conversation is to be compacted.
type Compacting struct {
	Settings json.RawMessage // over the agent's, nil for these
	Dry      bool            // only plan it
}

// Compact compacts a conversation because it was asked to. ErrInvalid if there is nothing to compact, or what must stay does not fit.
func (s *Store) Compact(ctx context.Context, org db.Org, c recall.Conversation, how Compacting) (compaction.Result, error) {
	p, err := s.Assemble(ctx, org, c.AgentID, c.ID, "")
	if err != nil {
		return compaction.Result{}, err
	}
	settings, err := p.Agent.compactionSettings(bytes.TrimSpace(how.Settings))
	if err != nil {
		return compaction.Result{}, err
	}
	job := p.job(settings, compaction.Manual)
	job.Dry = how.Dry
	return s.Compaction.Run(ctx, org, job)
}

// fits is how often a prompt is looked at until it fits: others may append meanwhile.
const fits = 8

// fitting is a prompt that fits its window: where it does not, room is made first.
func (s *Store) fitting(ctx context.Context, org db.Org, agentID, conversation string, f Format) (p Prompt, err error) {
	for range fits {
		if p, err = s.Assemble(ctx, org, agentID, conversation, f); err != nil {
			return p, err
		}
		changed, err := s.fit(ctx, org, p, compaction.BeforePrompt, handOutPatience)
		if err != nil || !changed {
			return p, err
		}
	}
	return s.Assemble(ctx, org, agentID, conversation, f)
}

// handOutPatience is how long a model may take for the summary that a prompt waits for. Callers wait a minute, most of them.
const handOutPatience = 25 * time.Second

// fit warns of a prompt that fills three quarters of its window, and compacts its conversation above the trigger; it says whether the
// prompt is another now. patience is how long the model that writes a summary may take, 0 as long as it may otherwise.
func (s *Store) fit(ctx context.Context, org db.Org, p Prompt, trigger string, patience time.Duration) (changed bool, err error) {
	settings, err := p.Agent.compactionSettings(nil)
	if err != nil {
		return false, err
	}
	job := p.job(settings, trigger)
	v, err := compaction.ViewOf(p.Conversation, p.Messages, job.Overhead)
	if err != nil {
		return false, err
	}
	v.Usage = job.Usage
	used, c := max(compaction.Estimate(v), p.unread.Tokens), p.Conversation
	due, now := compaction.Check(used, job.Overhead.Window, v.Open(), settings,
		compaction.TriggerState{Warned: c.Warned, Disarmed: c.Settled > 0, Base: c.Settled})
	if err := s.Recall.RecordUsage(ctx, org, c.Key, c.Version, usageOf(p, now)); err != nil {
		return false, err
	}
	if !due.Compact {
		if !due.Warn {
			return false, nil
		}
		return s.warn(ctx, org, c, v.Open() || !settings.Warning, compaction.WarningLine(used, job.Overhead.Window))
	}
	limit := settings.Trigger * float64(job.Overhead.Window)
	job.Patience = patience
	job.Due = func(v compaction.View) bool { return float64(compaction.Estimate(v)) > limit }
	_, err = s.Compaction.Run(ctx, org, job) // where nothing is due any more, another request has made room
	if _, nothing := errors.AsType[*compaction.Nothing](err); nothing && used <= job.Overhead.Window {
		return false, nil
	}
	return err == nil, err
}

// job is the compaction of a prompt's conversation.
func (p Prompt) job(settings compaction.Settings, trigger string) compaction.Task {
	tools := chat.Encode(toolsIn(OpenAI, p.definitions))
	overhead := compaction.PromptOverhead{Window: cmp.Or(p.Agent.Window(), assumedWindow), System: p.system.String(),
		Tools: tools, Tokens: p.Tokens.Tools + p.Tokens.instructions(), ToolTokens: p.Tokens.Tools}
	return compaction.Task{AgentID: p.Agent.ID, Conversation: p.Conversation.ID, Settings: settings, Overhead: overhead,
		Model: p.Agent.model(), Usage: p.usage(), Version: p.Conversation.Version, Trigger: trigger}
}

// full is the share of a window from which on a prompt is what was counted on it, whatever was reported of one before.
const full = 0.95

// usage is what is known of how many tokens a prompt has: what its provider reported of one before, else what was counted on what would be
// sent. The report is not believed where it is so little that the provider must have cut the prompt, nor where the prompt, which may have
// grown by files and blocks since, or by a compaction that was reverted, is full by our count. Where the provider counts more than we do, it
// will do so of what came after its report: that is believed to the double.
func (p Prompt) usage() *compaction.Usage {
	c := p.Conversation
	window := cmp.Or(p.Agent.Window(), assumedWindow)
	doubtful := c.Reported < p.Tokens.Total/2 || c.Reported < p.Tokens.Total && float64(p.Tokens.Total) >= full*float64(window)
	if n := len(p.Messages); p.unread.Count == 0 && n > 0 && doubtful {
		return &compaction.Usage{PromptTokens: p.Tokens.Total, Position: lastPosition(p.Messages)}
	}
	if c.Reported == 0 {
		return nil
	}
	after := 0
	for _, m := range p.Messages {
		if m.Role != recall.Summary && m.Position > c.ReportedPosition {
			after += m.Tokens
		}
	}
	if before := p.Tokens.Total - after; p.unread.Count == 0 && after > 0 && before > 0 && c.Reported > before {
		return &compaction.Usage{PromptTokens: c.Reported + after*min(c.Reported, 2*before)/before, Position: lastPosition(p.Messages)}
	}
	return &compaction.Usage{PromptTokens: c.Reported, Position: c.ReportedPosition}
}

// lastPosition is that of the last message but a summary, which stands first and was appended late.
func lastPosition(messages []recall.Message) int {
	last := messages[len(messages)-1]
	if last.Role == recall.Summary {
		return 0
	}
	return last.Position
}

// usageOf is what is stored of a look at a prompt. That its model was warned is told by warn.
func usageOf(p Prompt, m compaction.TriggerState) recall.Usage {
	u := recall.Usage{Fixed: p.Tokens.Tools + p.Tokens.instructions(), Warned: p.Conversation.Warned && m.Warned}
	if m.Disarmed {
		u.Settled = m.Base
	}
	return u
}

// warn tells the agent's readers, once, that three quarters of a window are in use, and its model with a line at the end of the
// conversation, unless silent; it says whether it did the latter.
func (s *Store) warn(ctx context.Context, org db.Org, c recall.Conversation, silent bool, line string) (said bool, err error) {
	err = db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		in := s.with(tx)
		first, err := in.Recall.MarkWarned(ctx, org, c)
		if err != nil || !first {
			return err
		}
		if !silent {
			draft := recall.Draft{Role: recall.System, Content: []recall.Part{{Type: recall.Text, Text: line}}}
			if _, err := in.Recall.Append(ctx, org, c.AgentID, c.ID, []recall.Draft{draft}); err != nil {
				return err
			}
			said = true
		}
		_, err = event.Append(ctx, tx, org, event.Event{AgentID: c.AgentID, Type: event.WindowWarning, RefID: c.ID})
		return err
	})
	return said, err
}

// Revert gives a conversation the view back that a compaction took. ErrConflict if that does not fit its window, another compaction came
// later, or it was reverted already.
func (s *Store) Revert(ctx context.Context, org db.Org, k compaction.Compaction) (compaction.Compaction, error) {
	restored, err := s.Compaction.Restored(ctx, org, k)
	if err != nil {
		return compaction.Compaction{}, err
	}
	p, err := s.assembleWanted(ctx, org, wanted{agentID: k.AgentID, conversation: restored.ID, frame: &restored.ContextView})
	if err != nil {
		return compaction.Compaction{}, err
	}
	settings, err := p.Agent.compactionSettings(nil)
	if err != nil {
		return compaction.Compaction{}, err
	}
	window := p.Agent.Window()
	limit := int(settings.Trigger * float64(window))
	if window > 0 && p.Tokens.Total > limit {
		return compaction.Compaction{}, db.Conflict("The view before compaction %s does not fit any more: it has %d tokens, %d more than the %d of its %d "+
			"at which it would be compacted again. Set a larger context_window_limit first, or read what it hides by expand",
			k.ID, p.Tokens.Total, p.Tokens.Total-limit, limit, window)
	}
	return s.Compaction.Revert(ctx, org, k, restored)
}
