package db

import (
	"cmp"
	"context"
	"strconv"
	"strings"
)

// Provenance says who stored something: a request with an API key, a tool that an agent called, or work that one of
// these started. An empty field is unknown. Ids are kept even if the key, agent or conversation has been deleted since.
type Provenance struct {
	KeyID          string `json:"key_id,omitempty" doc:"Of the API key of the request, or of what began the work."`
	AgentID        string `json:"agent_id,omitempty" doc:"The agent that did it, or that the request named."`
	ConversationID string `json:"conversation_id,omitempty" doc:"Where the agent did it, or that the request named."`
	Position       int    `json:"position,omitempty" doc:"In the conversation, of the message that called the tool."`
	Tool           string `json:"tool,omitempty" doc:"The tool that the agent called."`
}

// Makers say who created a thing, and who last changed it.
type Makers struct {
	MadeBy    *Provenance `db:"made_by" json:"made_by" doc:"Who made it; null if unknown."`
	ChangedBy *Provenance `db:"changed_by" json:"changed_by" doc:"Who last changed it; null if unknown, or nobody did."`
}

// maxProvenanceBytes limits each text of a Provenance. The schema limits the whole.
const maxProvenanceBytes = 200

type provenanceKey struct{}

// WithProvenance returns a context with which things are stored with a provenance. Empty fields of p are filled from
// ctx.
func WithProvenance(ctx context.Context, p Provenance) context.Context {
	return context.WithValue(ctx, provenanceKey{}, p.Or(ctx))
}

// ProvenanceOf returns the provenance of things stored with ctx, or nil if nothing is known.
func ProvenanceOf(ctx context.Context) *Provenance {
	p, _ := ctx.Value(provenanceKey{}).(Provenance)
	return p.Known()
}

// Or fills the empty fields of p from ctx.
func (p Provenance) Or(ctx context.Context) Provenance {
	of, _ := ctx.Value(provenanceKey{}).(Provenance)
	return Provenance{KeyID: cmp.Or(p.KeyID, of.KeyID), AgentID: cmp.Or(p.AgentID, of.AgentID),
		ConversationID: cmp.Or(p.ConversationID, of.ConversationID), Position: cmp.Or(p.Position, of.Position),
		Tool: cmp.Or(p.Tool, of.Tool)}
}

// Known returns the provenance, or nil if all its fields are empty.
func (p Provenance) Known() *Provenance {
	if p == (Provenance{}) {
		return nil
	}
	return &p
}

// Imported returns the provenance that a file contains, with new ids: rename maps the ids of agents and conversations
// in the file. It drops the key, which belongs to another server or organization. ErrInvalid if a field is not valid.
func (p *Provenance) Imported(rename func(id string) string) (*Provenance, error) {
	if p == nil {
		return nil, nil //nolint:nilnil // what is unknown stays so
	}
	imported := Provenance{AgentID: rename(p.AgentID), ConversationID: rename(p.ConversationID), Position: p.Position,
		Tool: p.Tool}
	for _, text := range []string{imported.AgentID, imported.ConversationID, imported.Tool} {
		if len(text) > maxProvenanceBytes || strings.ContainsRune(text, 0) {
			return nil, Invalid("provenance: %q has %d bytes; a text of it may have at most %d, without NUL", Short(text),
				len(text), maxProvenanceBytes)
		}
	}
	if p.Position < 0 {
		return nil, Invalid("provenance: the position is %s; it must be from 1", strconv.Itoa(p.Position))
	}
	return imported.Known(), nil
}
