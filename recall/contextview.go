package recall

import "encoding/json"

// ContextView says which messages of a conversation its model sees: those from FirstVisible on and those at the Kept
// positions. The summary at SummaryAt stands for all others.
type ContextView struct {
	Version      int             `db:"frame" json:"-"` // every change raises it
	FirstVisible int             `db:"first_visible" json:"first_visible"`
	Kept         []int           `db:"kept" json:"kept"`                         // positions before FirstVisible, in order
	SummaryAt    *int            `db:"summary_position" json:"summary_position"` // nil: nothing is hidden
	Clipped      json.RawMessage `db:"clipped" json:"clipped"`                   // the caller's list of clipped results
	HiddenTokens int64           `db:"hidden_tokens" json:"hidden_tokens"`       // tokens of the hidden messages
}

// Usage says how full a conversation's window is, in tokens, as far as Loci knows.
type Usage struct {
	Fixed            int  `db:"fixed_tokens" json:"-"`      // the last measured prompt without its messages
	Reported         int  `db:"reported_tokens" json:"-"`   // a provider's count of a prompt with this view; 0: none
	ReportedPosition int  `db:"reported_position" json:"-"` // position of the last message in that prompt
	Settled          int  `db:"settled_tokens" json:"-"`    // usage after a compaction; 0 once it has grown
	Warned           bool `db:"warned" json:"-"`            // the model was warned that its window is nearly full
}

// endFlushes returns the start of a statement that changes the view of a conversation, given by the placeholders of its
// organization and key. It ends the conversation's silent turns, which belong to the view before.
func endFlushes(org, key string) string {
	open := ` WHERE org = ` + org + ` AND conversation_key = ` + key + ` AND status = 'open' AND deadline `
	return `
		WITH expired AS (
			UPDATE flushes SET status = 'expired', ended_at = deadline` + open + `<= now()
		), overtaken AS (
			UPDATE flushes SET status = 'overtaken', ended_at = now()` + open + `> now()
		)`
}
