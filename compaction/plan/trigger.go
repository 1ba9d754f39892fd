package plan

import "github.com/loci-memory/loci/compaction/ratio"

// TriggerState is what Check remembers of a conversation. The zero value is that of a new conversation.
type TriggerState struct {
	Warned   bool `json:"warned"`   // the model was warned since usage was last below the warning
	Disarmed bool `json:"disarmed"` // a compaction disarmed the trigger
	Base     int  `json:"base"`     // tokens from which usage must grow until the trigger is armed again
}

// Decision says what Check found due.
type Decision struct {
	Warn     bool `json:"warn"`     // usage reached 75 % of the window
	Compact  bool `json:"compact"`  // now
	Deferred bool `json:"deferred"` // a compaction is due, but a tool call is open
}

// Check decides from the tokens of a view (Estimate) whether to warn and whether to compact. It warns once until usage
// falls below 75 % of the window. It compacts above the trigger; below 95 % it waits while a tool call is open, and
// until usage has grown by 5 % of the window since the last compaction. Nothing is due if the window is unknown.
func Check(tokens, window int, open bool, s Settings, was TriggerState) (Decision, TriggerState) {
	if window <= 0 {
		return Decision{}, was
	}
	return Pressure{Tokens: tokens, Window: window, Due: tokens > s.Limit(window), Wait: open}.Decide(was)
}

// Pressure holds the numbers by which Decide chooses whether to compact a view.
type Pressure struct {
	Tokens  int     // of the view
	Window  int     // 0: unknown
	Due     bool    // a trigger says so
	Paced   bool    // by a rule that is not due again before the conversation has gone on
	Wait    bool    // something is under way that a compaction should not interrupt
	ForceAt float64 // the share of the window from which nothing defers; 0: 95 %
}

// Decide says what is due. A view of an unknown window has no warning, and is compacted only if a trigger says so.
func (p Pressure) Decide(was TriggerState) (d Decision, now TriggerState) {
	now = was
	grown := ratio.Share(rearmBy, p.Window)
	if p.Window > 0 {
		now.Warned = p.Tokens >= ratio.Share(warnAt, p.Window)
		d.Warn = now.Warned && !was.Warned
	} else {
		grown = ratio.Share(rearmBy, was.Base)
	}
	if now.Disarmed {
		now.Base = min(now.Base, p.Tokens)
		now.Disarmed = p.Tokens < ratio.Add(now.Base, grown)
	}
	force := forceAt
	if p.ForceAt > 0 {
		force = p.ForceAt
	}
	switch {
	case p.Due && p.Window > 0 && p.Tokens >= ratio.Share(force, p.Window):
		d.Compact = true
	case p.Due && (p.Paced || !now.Disarmed):
		d.Compact, d.Deferred = !p.Wait, p.Wait
	}
	return d, now
}
