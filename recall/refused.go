package recall

import (
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/redact"
)

// Refused says why a message left the view: a provider refused a prompt for what it says. The log keeps the message.
type Refused struct {
	Status  int    `json:"status" doc:"That the provider answered with."`
	Message string `json:"message" doc:"The provider's own words, redacted, of at most 300 characters."`

	// Trial is set on messages from before the refused turn. They left the view because the provider refused two turns
	// in a row, and took the prompt without them.
	Trial int `json:"trial,omitempty" doc:"Of messages from before the refused turn: a number of the trial without them."`

	// Again is set on a message whose turn failed, and that left the view because a later one says the same; or on that
	// later one, if the turn had calls: it goes on.
	Again bool `json:"again,omitempty" doc:"Its turn failed for this, and another message says the same in its place."`
}

// FailedTurn is the last turn of a conversation that failed without an answer. What it said stays in the view, except
// for what a provider refused.
type FailedTurn struct {
	At     int `json:"at"`               // the conversation's last position then
	Status int `json:"status,omitempty"` // that the provider answered with; 0 if it is not known
}

// LastRefusal is the last refusal of a prompt of a conversation. Until an answer comes after it, the next one is in a
// row with it.
type LastRefusal struct {
	At     int    `json:"at"`               // the conversation's last position then
	OTID   string `json:"otid,omitempty"`   // the caller's own id of its report
	Closed bool   `json:"closed,omitempty"` // it left nothing to ask: without a new message, no prompt can be refused
	Part   bool   `json:"part,omitempty"`   // a part of the turn left, and the caller's loop asks without it
	Begin  int    `json:"begin,omitempty"`  // of Part: the turn's first message
	Turn   []int  `json:"turn,omitempty"`   // positions of a turn that left, though the fault may be of what came before
	Trial  int    `json:"trial,omitempty"`  // of the trial that is under way, or was last; 0 for none
	Stage  int    `json:"stage,omitempty"`  // of a trial under way: the number of the set that is left out, from 1
	Back   bool   `json:"back,omitempty"`   // of a trial under way: Turn is in the view again
	From   int    `json:"from,omitempty"`   // of a trial under way: the first message of the refused turn; else 0
	Notes  []int  `json:"notes,omitempty"`  // positions of what the model was told of the trial

	Failed *FailedTurn `json:"failed,omitempty"` // nil: none failed

	// Untold are positions of the newest messages whose sender was not told that they are stored, and may send them again.
	Untold []int `json:"untold,omitempty"`
}

// maxRefusedRunes bounds the words of a provider.
const maxRefusedRunes = 300

// cleaned returns what a provider said as it is stored; nil for nil.
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
