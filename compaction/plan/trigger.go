package plan

import "github.com/loci-memory/loci/compaction/tokenmath"

// TriggerState is what Check remembers about a conversation. A new conversation has the zero value.
type TriggerState struct {
	Warned   bool `json:"warned"`   // the model was warned, and usage has not been below the warning since
	Disarmed bool `json:"disarmed"` // a compaction disarmed the trigger
	Base     int  `json:"base"`     // tokens from which usage must grow before the trigger is armed again
}

// Decision says what Check found due.
type Decision struct {
	Warn     bool `json:"warn"`     // usage has reached 75 % of the window
	Compact  bool `json:"compact"`  // compact now
	Deferred bool `json:"deferred"` // a compaction is due, but a tool call is open
}

// Check decides from the tokens of a view (see Estimate) whether to warn and whether to compact. It warns once, and
// again only after usage was below 75 % of the window. It compacts above the trigger. Below 95 % it waits while a tool
// call is open, and until usage has grown by 5 % of the window since the last compaction. If the window is unknown,
// nothing is due.
func Check(tokens, window int, open bool, s Settings, state TriggerState) (Decision, TriggerState) {
	if window <= 0 {
		return Decision{}, state
	}
	return Pressure{Tokens: tokens, Window: window, Due: tokens > s.Limit(window), Wait: open}.Decide(state)
}

// Pressure holds the numbers that Decide uses.
type Pressure struct {
	Tokens  int     // tokens of the view
	Window  int     // 0: unknown
	Due     bool    // a trigger is due
	Paced   bool    // the due rule is not due again before the conversation has gone on
	Wait    bool    // something is under way that a compaction should not interrupt
	ForceAt float64 // the share of the window from which on nothing delays; 0: 95 %
}

// Decide says what is due. If the window is unknown, there is no warning, and only Due compacts.
func (p Pressure) Decide(before TriggerState) (d Decision, after TriggerState) {
	after = before
	grown := tokenmath.Share(rearmBy, p.Window)
	if p.Window > 0 {
		after.Warned = p.Tokens >= tokenmath.Share(warnAt, p.Window)
		d.Warn = after.Warned && !before.Warned
	} else {
		grown = tokenmath.Share(rearmBy, before.Base)
	}
	if after.Disarmed {
		after.Base = min(after.Base, p.Tokens)
		after.Disarmed = p.Tokens < tokenmath.Add(after.Base, grown)
	}
	force := forceAt
	if p.ForceAt > 0 {
		force = p.ForceAt
	}
	switch {
	case p.Due && p.Window > 0 && p.Tokens >= tokenmath.Share(force, p.Window):
		d.Compact = true
	case p.Due && (p.Paced || !after.Disarmed):
		d.Compact, d.Deferred = !p.Wait, p.Wait
	}
	return d, after
}
