package letta

import (
	"strings"

	"github.com/loci-memory/loci/db/event"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// AgentEvent is an event of an agent, with its message if it has one.
type AgentEvent struct {
	event.Event
	Message *EventMessage `json:"message,omitempty" doc:"Of events of type message, until its conversation is deleted."`
}

// EventMessage is a message of the log. It is a type of its own to have its own name in the OpenAPI document.
type EventMessage struct{ recall.Message }

// EventSlice selects events of an agent. Positions are at most 9e15, because a JSON number holds integers up to there
// exactly.
type EventSlice struct {
	From     int64           `query:"from" minimum:"1" maximum:"9e15" doc:"The first position."`
	To       int64           `query:"to" minimum:"1" maximum:"9e15" doc:"The last position; it belongs to the slice."`
	Before   int64           `query:"before" minimum:"1" maximum:"9e15" doc:"Events below it, the nearest without from."`
	After    rest.Opt[int64] `query:"after" maximum:"9e15" doc:"Events above this position."`
	Types    []string        `query:"types,explode" doc:"Only of these types: repeated, or with commas."`
	Limit    int             `query:"limit" minimum:"1" maximum:"1000" default:"100" doc:"How many events at most."`
	Order    string          `query:"order" enum:"asc,desc" default:"asc" doc:"Oldest first, or newest first."`
	Consumer string          `query:"consumer" doc:"Events after this named reader's position; without the others."`
}

// Query returns the store's query.
func (in EventSlice) Query() event.Query {
	q := event.Query{From: in.From, To: in.To, Before: in.Before, After: in.After.Value, Types: EventTypes(in.Types),
		Limit: in.Limit, Descending: in.Order == rest.NewestFirst}
	if in.After.Set {
		q.From = max(q.From, 1) // after=0 is a bound, too
	}
	return q
}

// EventTypes reads a list of types, which a query may repeat or separate by commas.
func EventTypes(values []string) (types []event.Type) {
	for _, value := range values {
		for name := range strings.SplitSeq(value, ",") {
			if name = strings.TrimSpace(name); name != "" {
				types = append(types, event.Type(name))
			}
		}
	}
	return types
}

// Commit sets the position of a named reader.
type Commit struct {
	Seq      int64           `json:"seq" maximum:"9e15" doc:"The last event that it has handled; 0: none. It may go back."`
	Expected rest.Opt[int64] `json:"expected_seq,omitzero" maximum:"9e15" doc:"Its position until now, 0: none; else 409."`
}
