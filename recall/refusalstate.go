package recall

import (
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/redact"
)

// Refused says why a message left the view: a provider refused a prompt for the message's content. The log keeps the
// message.
type Refused struct {
	Status  int    `json:"status" doc:"That the provider answered with."`
	Message string `json:"message" doc:"The provider's own words, redacted, of at most 300 characters."`

	// Trial is set on messages from before the refused turn. They left the view because the provider refused two turns in
	// a row, but accepted the prompt without them.
	Trial int `json:"trial,omitempty" doc:"Of messages from before the refused turn: a number of the trial without them."`

	// Again is set on a message that left the view because its turn failed and a later message says the same. If the turn
	// had calls, it goes on; then the later message leaves, and Again is set there.
	Again bool `json:"again,omitempty" doc:"Its turn failed for this, and another message says the same in its place."`
}

// FailedTurn is a conversation's last turn, if it failed without an answer. Its messages stay in the view, except those
// that a provider refused.
type FailedTurn struct {
	At     int `json:"at"`               // the conversation's last position at that time
	Status int `json:"status,omitempty"` // the provider's HTTP status; 0 if unknown
}

// LastRefusal is the last refusal of one of a conversation's prompts. The next refusal follows on it unless an answer
// comes between them.
type LastRefusal struct {
	At     int    `json:"at"`               // the conversation's last position at that time
	OTID   string `json:"otid,omitempty"`   // the caller's own id of the report
	Closed bool   `json:"closed,omitempty"` // nothing is left to ask: until a new message comes, no prompt can be refused
	Part   bool   `json:"part,omitempty"`   // a part of the turn left, and the caller's loop asks again without it
	Begin  int    `json:"begin,omitempty"`  // with Part: the turn's first message
	Turn   []int  `json:"turn,omitempty"`   // positions of a turn that left the view; earlier messages may be the cause
	Trial  int    `json:"trial,omitempty"`  // number of the current or last trial; 0 for none
	Stage  int    `json:"stage,omitempty"`  // in a trial: number of the set that is left out now, from 1
	Back   bool   `json:"back,omitempty"`   // in a trial: Turn is back in the view
	From   int    `json:"from,omitempty"`   // in a trial: the refused turn's first message; otherwise 0
	Notes  []int  `json:"notes,omitempty"`  // positions of the notes to the model about the trial

	Failed *FailedTurn `json:"failed,omitempty"` // nil if none failed

	// Unconfirmed are the positions of the newest messages if their sender was not told that they are stored. The sender
	// may send them again.
	Unconfirmed []int `json:"untold,omitempty"`
}

// maxRefusedRunes bounds the stored words of a provider.
const maxRefusedRunes = 300

// cleaned returns a provider's words as they are stored; nil for nil.
func (r *Refused) cleaned(redactor *redact.Redactor) *Refused {
	if r == nil {
		return nil
	}
	words := redactor.Redact(db.Clean(strings.Join(strings.Fields(r.Message), " ")))
	if runes := []rune(words); len(runes) > maxRefusedRunes {
		words = string(runes[:maxRefusedRunes]) + "…"
	}
	return &Refused{Status: r.Status, Message: words, Trial: r.Trial, Again: r.Again}
}
