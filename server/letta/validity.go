package letta

import (
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// NewValidity is the time span in which a stored fact holds. In a change, absent fields stay and null fields are
// removed.
type NewValidity struct {
	ValidFrom  rest.Opt[string] `json:"valid_from,omitzero" doc:"When it begins to hold, in ISO 8601."`
	ValidUntil rest.Opt[string] `json:"valid_until,omitzero" doc:"When it ends to hold; a date is the end of that day."`
}

// Validity returns the time span of something new. Times without an offset are in zone.
func (n NewValidity) Validity(zone *time.Location) (v db.Validity, err error) {
	from, until, err := n.Bounds(zone)
	if from != nil {
		v.ValidFrom = from.At
	}
	if until != nil {
		v.ValidUntil = until.At
	}
	return v, err
}

// Bounds returns the changes of both bounds; nil leaves a bound unchanged. Times without an offset are in zone.
func (n NewValidity) Bounds(zone *time.Location) (from, until *db.Bound, err error) {
	if n.ValidFrom.Set {
		if from, err = bound("valid_from", n.ValidFrom, recall.ParseStart, zone); err != nil {
			return nil, nil, err
		}
	}
	if n.ValidUntil.Set {
		until, err = bound("valid_until", n.ValidUntil, recall.ParseUntil, zone)
	}
	return from, until, err
}

// bound returns the change for one bound. Null removes the bound.
func bound(field string, value rest.Opt[string], parse func(string, *time.Location) (*time.Time, error),
	zone *time.Location) (*db.Bound, error) {
	if value.Null {
		return &db.Bound{}, nil
	}
	instant, err := parse(value.Value, zone)
	if err != nil || instant == nil {
		return nil, notATime(field, value.Value)
	}
	return &db.Bound{At: instant}, nil
}

func notATime(field, text string) error {
	return &db.FieldError{Field: field, Rule: "'" + db.Short(text) + "' is not a time in ISO 8601, such as 2024-05-01 " +
		"or 2024-05-01T12:00:00Z"}
}

// HeldAt are the parameters that select facts by the time in which they hold.
type HeldAt struct {
	AsOf  string `query:"as_of" doc:"What held at this time, in ISO 8601; else what holds now."`
	Ended bool   `query:"ended" doc:"Also what has ended, and what has not begun."`
}

// Held returns which facts to show. Times without an offset are in zone.
func (h HeldAt) Held(zone *time.Location) (db.Held, error) {
	return heldAt("query", h.AsOf, h.Ended, zone)
}

func heldAt(source, asOf string, ended bool, zone *time.Location) (db.Held, error) {
	if asOf != "" && ended {
		return db.Held{}, &db.FieldError{Field: source + ".ended", Rule: "leave it out with as_of, or as_of with it"}
	}
	instant, err := recall.ParseStart(asOf, zone)
	if err != nil {
		err = notATime(source+".as_of", asOf)
	}
	return db.Held{AsOf: instant, All: ended}, err
}
