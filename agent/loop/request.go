package loop

import (
	"crypto/sha256"
	"encoding/json"
	"slices"

	"github.com/loci-memory/loci/recall"
)

// Request asks for a run.
type Request struct {
	AgentID      string
	Conversation string // an id or recall.DefaultConversation
	Background   bool
	Options      Options
	Input        []recall.Draft // the client's messages, and results of tools that it ran
	Approvals    []Approval

	rules  rules // the agent's rules
	clears bool  // the agent's model sees nothing of earlier requests
}

// Started is a run that was started, or found by a message's otid.
type Started struct {
	Run Run
	*Feed
}

// otids returns the otids of the request's approvals, and of messages that come with them.
func (r Request) otids() (otids []string) {
	add := func(otid string) {
		if otid != "" && !slices.Contains(otids, otid) {
			otids = append(otids, otid)
		}
	}
	for _, a := range r.Approvals {
		add(a.OTID)
	}
	for _, d := range r.Input {
		if len(r.Approvals) > 0 && d.OTID != nil {
			add(*d.OTID)
		}
	}
	return otids
}

// inputSHA256 returns the SHA-256 of messages that come with the request's approvals; nil without approvals.
func (r Request) inputSHA256() []byte {
	if len(r.Approvals) == 0 {
		return nil
	}
	raw, _ := json.Marshal(r.Input) // it holds only texts and parsed JSON
	sum := sha256.Sum256(raw)
	return sum[:]
}
