package compaction

// Shares of the window at which something happens whatever the settings say.
const (
	warnAt  = 0.75 // the model is told that it will be compacted
	rearmBy = 0.05 // by which usage grows after a compaction before the next one
	forceAt = 0.95 // from which on nothing defers a compaction that is due
)

// Memory is what is remembered of a conversation between two looks at its usage. The zero value is that of a new conversation.
type Memory struct {
	Warned   bool `json:"warned"`   // since usage was last below the warning
	Disarmed bool `json:"disarmed"` // by a compaction
	Base     int  `json:"base"`     // tokens from which on usage grows until the trigger is armed again
}

// Decision says what is due.
type Decision struct {
	Warn     bool `json:"warn"`     // usage reached 75 % of the window
	Compact  bool `json:"compact"`  // now
	Deferred bool `json:"deferred"` // it would be due, but a tool's call is open
}

// Watch decides by the tokens that a view takes (Estimate) whether to warn and whether to compact. A warning comes once until usage falls
// below 75 % of the window. A compaction is due above the trigger; it waits while a tool's call is open, and until usage has grown by 5 %
// since the last one, but for neither from 95 % on. Without a known window nothing is due.
func Watch(tokens, window int, open bool, s Settings, was Memory) (Decision, Memory) {
	if window <= 0 {
		return Decision{}, was
	}
	var d Decision
	now := was
	now.Warned = tokens >= share(warnAt, window)
	d.Warn = now.Warned && !was.Warned
	if now.Disarmed {
		now.Base = min(now.Base, tokens)
		now.Disarmed = tokens < add(now.Base, share(rearmBy, window))
	}
	switch due := tokens > share(s.Trigger, window); {
	case due && tokens >= share(forceAt, window):
		d.Compact = true
	case due && !now.Disarmed:
		d.Compact, d.Deferred = !open, open
	}
	return d, now
}
