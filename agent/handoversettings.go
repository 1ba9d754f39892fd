package agent

import (
	"slices"

	"github.com/loci-memory/loci/db"
)

// The modes of hand-overs.
const (
	HandoverOff     = "off"
	HandoverApply   = "apply"   // updates are made at once
	HandoverPending = "pending" // updates wait for an operator
)

// The ends of a conversation at which a hand-over may happen.
const (
	OnReset   = "reset"   // its messages are hidden
	OnArchive = "archive" // it is archived
)

// HandoverSettings say what happens to an agent's session when its conversation ends.
type HandoverSettings struct {
	Mode string   `json:"mode" enum:"off,apply,pending" doc:"pending: an operator approves each update."`
	On   []string `json:"on,omitempty" required:"false" doc:"Of reset and archive; both if absent."`
}

func (h HandoverSettings) check() error {
	if !slices.Contains([]string{HandoverOff, HandoverApply, HandoverPending}, h.Mode) {
		return db.Invalid("handover.mode is %q; it must be one of off, apply, pending", db.Short(h.Mode))
	}
	for _, on := range h.On {
		if on != OnReset && on != OnArchive {
			return db.Invalid("handover.on has %q; it may have reset and archive", db.Short(on))
		}
	}
	return nil
}
