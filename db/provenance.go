package db

import (
	"cmp"
	"context"
	"strconv"
	"strings"
)

// Provenance is who stored something: a request with an API key, a tool that an agent called, or the work that either
// of them began. Empty fields are unknown. The ids are kept as they were: what they name may be deleted since.
type Provenance struct {
	KeyID          string `json:"key_id,omitempty" doc:"Of the API key of the request, or of what began the work."`
	AgentID        string `json:"agent_id,omitempty" doc:"The agent that did it, or that the request named."`
	ConversationID string `json:"conversation_id,omitempty" doc:"Where the agent did it, or that the request named."`
	Position       int    `json:"position,omitempty" doc:"In the conversation, of the message that called the tool."`
	Tool           string `json:"tool,omitempty" doc:"The tool that the agent called."`
}

// Makers are who made what can be changed, and who last changed it.
type Makers struct {
	MadeBy    *Provenance `db:"made_by" json:"made_by" doc:"Who made it; null if unknown."`
	ChangedBy *Provenance `db:"changed_by" json:"changed_by" doc:"Who last changed it; null if unknown, or nobody did."`
}

// maxProvenanceBytes bounds each text of a Provenance; Postgres bounds the whole.
const maxProvenanceBytes = 200

type provenanceKey struct{}

// WithProvenance returns a context of work that stores with a provenance. Its empty fields are those of ctx.
func WithProvenance(ctx context.Context, p Provenance) context.Context {
	return context.WithValue(ctx, provenanceKey{}, p.Or(ctx))
}

// ProvenanceOf returns the provenance of what is stored with ctx; nil if nothing is known of it.
func ProvenanceOf(ctx context.Context) *Provenance {
	p, _ := ctx.Value(provenanceKey{}).(Provenance)
	return p.Known()
}

// Or returns a provenance whose empty fields are those of ctx.
func (p Provenance) Or(ctx context.Context) Provenance {
	of, _ := ctx.Value(provenanceKey{}).(Provenance)
	return Provenance{KeyID: cmp.Or(p.KeyID, of.KeyID), AgentID: cmp.Or(p.AgentID, of.AgentID),
		ConversationID: cmp.Or(p.ConversationID, of.ConversationID), Position: cmp.Or(p.Position, of.Position),
		Tool: cmp.Or(p.Tool, of.Tool)}
}

// Known returns the provenance; nil if all its fields are empty.
func (p Provenance) Known() *Provenance {
	if p == (Provenance{}) {
		return nil
	}
	return &p
}

// Imported returns a provenance that a file brings, in which rename gives the ids of what the file has. The key is left
// out: it is one of another server, or of another organization. ErrInvalid if a field is none of a provenance.
func (p *Provenance) Imported(rename func(id string) string) (*Provenance, error) {
	if p == nil {
		return nil, nil //nolint:nilnil // what is unknown stays so
	}
	now := Provenance{AgentID: rename(p.AgentID), ConversationID: rename(p.ConversationID), Position: p.Position,
		Tool: p.Tool}
	for _, text := range []string{now.AgentID, now.ConversationID, now.Tool} {
		if len(text) > maxProvenanceBytes || strings.ContainsRune(text, 0) {
			return nil, Invalid("provenance: %q has %d bytes; a text of it may have at most %d, without NUL", Short(text),
				len(text), maxProvenanceBytes)
		}
	}
	if p.Position < 0 {
		return nil, Invalid("provenance: the position is %s; it must be from 1", strconv.Itoa(p.Position))
	}
	return now.Known(), nil
}
