package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// assumedWindow is the window, in tokens, of a model of which none is known, where one is needed: the smallest that files are kept for
// so.
const assumedWindow = 32_768

// windowOf is the window of the model that a conversation is held with: its own limit, or the agent's; 0 is unknown.
func windowOf(a Agent, c recall.Conversation) int {
	if c.WindowLimit != nil {
		return *c.WindowLimit
	}
	return a.Window()
}

// modelOf is the handle of the model that a conversation is held with: its own, or the agent's; empty where neither is known.
func modelOf(a Agent, c recall.Conversation) string {
	for _, model := range []*string{c.Model, a.Model} {
		if model != nil {
			return *model
		}
	}
	return ""
}

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

// beside is what the model is sent beside the messages of a conversation. functions are the definitions of its tools.
func (s *Store) beside(ctx context.Context, org db.Org, a Agent, c recall.Conversation, functions []any) (compaction.Beside, error) {
	name := c.ID
	if c.IsDefault {
		name = recall.DefaultConversation
	}
	p, err := s.compile(ctx, org, a, name)
	if err != nil {
		return compaction.Beside{}, err
	}
	b := compaction.Beside{Window: windowOf(a, c), System: p.String()}
	if len(functions) > 0 {
		if b.Tools, err = json.Marshal(functions); err != nil {
			return compaction.Beside{}, err
		}
	}
	b.ToolTokens = recall.Tokens(string(b.Tools))
	b.Tokens = recall.Tokens(b.System) + b.ToolTokens
	return b, nil
}

// Compacting is how a conversation is to be compacted.
type Compacting struct {
	Settings  json.RawMessage // over the agent's, nil for these
	Functions []any           // the definitions of the model's tools
	Dry       bool            // only plan it
}

// Compact compacts a conversation because it was asked to. ErrInvalid if there is nothing to compact, or what must stay does not fit.
func (s *Store) Compact(ctx context.Context, org db.Org, c recall.Conversation, how Compacting) (compaction.Result, error) {
	a, err := s.Agent(ctx, org, c.AgentID)
	if err != nil {
		return compaction.Result{}, err
	}
	settings, err := a.compactionSettings(bytes.TrimSpace(how.Settings))
	if err != nil {
		return compaction.Result{}, err
	}
	beside, err := s.beside(ctx, org, a, c, how.Functions)
	if err != nil {
		return compaction.Result{}, err
	}
	return s.Compaction.Run(ctx, org, compaction.Job{AgentID: a.ID, Conversation: c.ID, Settings: settings, Beside: beside,
		Model: modelOf(a, c), Trigger: compaction.Manual, Dry: how.Dry})
}

// Crowds tells whether a conversation may fill so much of its window that it is worth a look: it is cheap, and errs to that side.
func (a Agent) Crowds(c recall.Conversation) bool {
	window := windowOf(a, c)
	return window > 0 && float64(c.Estimate()) >= crowded*float64(window)
}

// crowded is the share of a window from which on a look is worth it: less than the warning's, because the estimate may be low.
const crowded = 0.65

// Attend looks at how full the window of a conversation is once messages were appended: it warns at three quarters, and compacts above the
// trigger. Of a model whose window is unknown it does nothing.
func (s *Store) Attend(ctx context.Context, org db.Org, c recall.Conversation, functions []any) error {
	a, err := s.Agent(ctx, org, c.AgentID)
	if err != nil || windowOf(a, c) == 0 {
		return err
	}
	_, err = s.fit(ctx, org, a, c, functions, compaction.Threshold, 0)
	return err
}

// fit keeps what a model sees of a conversation inside its window, and returns what it sees beside the messages. patience is how long the
// model that writes a summary may take, 0 as long as it may otherwise.
func (s *Store) fit(ctx context.Context, org db.Org, a Agent, c recall.Conversation, functions []any, trigger string,
	patience time.Duration,
) (compaction.Beside, error) {
	beside, err := s.beside(ctx, org, a, c, functions)
	if err != nil {
		return beside, err
	}
	if beside.Window == 0 {
		beside.Window = assumedWindow
	}
	settings, err := a.compactionSettings(nil)
	if err != nil {
		return beside, err
	}
	v, err := s.Compaction.Load(ctx, org, c, beside)
	if err != nil {
		return beside, err
	}
	tokens := compaction.Estimate(v)
	due, now := compaction.Watch(tokens, beside.Window, v.Open(), settings, memoryOf(c))
	if err := s.Recall.Gauge(ctx, org, c.Key, c.Version, usageOf(c, beside, now)); err != nil {
		return beside, err
	}
	if due.Warn && !due.Compact {
		err = s.warn(ctx, org, c, v.Open() || !settings.Warning, compaction.WarningLine(tokens, beside.Window))
	}
	if err != nil || !due.Compact {
		return beside, err
	}
	limit := settings.Trigger * float64(beside.Window)
	_, err = s.Compaction.Run(ctx, org, compaction.Job{AgentID: a.ID, Conversation: c.ID, Settings: settings, Beside: beside,
		Model: modelOf(a, c), Trigger: trigger, Patience: patience,
		Due: func(v compaction.View) bool { return float64(compaction.Estimate(v)) > limit }})
	return beside, err
}

func memoryOf(c recall.Conversation) compaction.Memory {
	return compaction.Memory{Warned: c.Warned, Disarmed: c.Settled > 0, Base: c.Settled}
}

// usageOf is what is stored of a look at a conversation. That it was warned is told by warn.
func usageOf(c recall.Conversation, beside compaction.Beside, m compaction.Memory) recall.Usage {
	u := recall.Usage{Fixed: beside.Tokens, Warned: c.Warned && m.Warned}
	if m.Disarmed {
		u.Settled = m.Base
	}
	return u
}

// warn tells the agent's readers, once, that three quarters of a window are in use, and its model with a line at the end of the
// conversation, unless silent.
func (s *Store) warn(ctx context.Context, org db.Org, c recall.Conversation, silent bool, line string) error {
	return db.Tx(ctx, s.DB, func(tx pgx.Tx) error {
		in := s.with(tx)
		first, err := in.Recall.Warn(ctx, org, c)
		if err != nil || !first {
			return err
		}
		if !silent {
			draft := recall.Draft{Role: recall.System, Content: []recall.Part{{Type: recall.Text, Text: line}}}
			if _, err := in.Recall.Append(ctx, org, c.AgentID, c.ID, []recall.Draft{draft}); err != nil {
				return err
			}
		}
		_, err = db.Append(ctx, tx, org, db.Event{AgentID: c.AgentID, Type: db.WindowWarning, RefID: c.ID})
		return err
	})
}

// Revert gives a conversation the view back that a compaction took. ErrConflict if that does not fit its window, another compaction came
// later, or it was reverted already.
func (s *Store) Revert(ctx context.Context, org db.Org, k compaction.Compaction, functions []any) (compaction.Compaction, error) {
	a, err := s.Agent(ctx, org, k.AgentID)
	if err != nil {
		return compaction.Compaction{}, err
	}
	restored, err := s.Compaction.Restored(ctx, org, k)
	if err != nil {
		return compaction.Compaction{}, err
	}
	beside, err := s.beside(ctx, org, a, restored, functions)
	if err != nil {
		return compaction.Compaction{}, err
	}
	settings, err := a.compactionSettings(nil)
	if err != nil {
		return compaction.Compaction{}, err
	}
	v, err := s.Compaction.Load(ctx, org, restored, beside)
	if err != nil {
		return compaction.Compaction{}, err
	}
	limit := int(settings.Trigger * float64(beside.Window))
	if tokens := compaction.Count(v); beside.Window > 0 && tokens > limit {
		return compaction.Compaction{}, db.Conflict("The view before compaction %s does not fit any more: it has %d tokens, %d more than the %d of its %d "+
			"at which it would be compacted again. Set a larger context_window_limit first, or read what it hides by expand",
			k.ID, tokens, tokens-limit, limit, beside.Window)
	}
	return s.Compaction.Revert(ctx, org, k, restored)
}
