package recall

import "encoding/json"

// ContextView says which messages of a conversation its model sees: those from FirstVisible on, those of Kept, and for
// the others the summary at SummaryAt.
type ContextView struct {
	Version      int             `db:"frame" json:"-"` // every change raises it
	FirstVisible int             `db:"first_visible" json:"first_visible"`
	Kept         []int           `db:"kept" json:"kept"`                         // positions before FirstVisible, in order
	SummaryAt    *int            `db:"summary_position" json:"summary_position"` // of the summary; nil: nothing is hidden
	Clipped      json.RawMessage `db:"clipped" json:"clipped"`                   // the caller's list of clipped results
	HiddenTokens int64           `db:"hidden_tokens" json:"hidden_tokens"`       // of the hidden messages
}

// Usage is how full a conversation's window is known to be, in tokens.
type Usage struct {
	Fixed            int  `db:"fixed_tokens" json:"-"`      // of the last measured prompt, without its messages
	Reported         int  `db:"reported_tokens" json:"-"`   // a provider's count of a prompt of this view; 0: none
	ReportedPosition int  `db:"reported_position" json:"-"` // of the last message of that prompt
	Settled          int  `db:"settled_tokens" json:"-"`    // after the last compaction; 0 once usage has grown past it
	Warned           bool `db:"warned" json:"-"`            // the model was warned that its window is nearly full
}
