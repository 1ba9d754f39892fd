package recall

import (
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
)

// ParseStart reads the start of a time range in ISO 8601: a date, or a date with a time to the minute or finer. The
// time may have an offset or Z; otherwise it is in zone (nil is UTC). It returns nil for an empty text, and otherwise a
// time that is Storable. ErrInvalid for any other text.
func ParseStart(text string, zone *time.Location) (*time.Time, error) {
	at, _, err := parseTime("start_date", text, zone)
	return storable(at), err
}

// ParseEnd reads the inclusive end of a time range in the forms of ParseStart. It returns the last moment of the day,
// minute or second that the text names.
func ParseEnd(text string, zone *time.Location) (*time.Time, error) {
	at, last, err := parseTime("end_date", text, zone)
	if at == nil {
		return nil, err
	}
	return storable(&last), err
}

// ParseUntil reads the exclusive end of a time range in the forms of ParseStart. A date means the end of that day.
func ParseUntil(text string, zone *time.Location) (*time.Time, error) {
	at, last, err := parseTime("until", text, zone)
	if at != nil && last.Sub(*at) > time.Hour {
		at = new(last.Add(db.Resolution))
	}
	return storable(at), err
}

// parseTime returns the first and the last moment of what a text names; nil if the text is empty.
func parseTime(field, text string, zone *time.Location) (first *time.Time, last time.Time, err error) {
	if zone == nil {
		zone = time.UTC
	}
	trimmed := strings.TrimSpace(text)
	if trimmed == "" {
		return nil, time.Time{}, nil
	}
	if at, last, ok := db.Moments(trimmed, zone); ok {
		return &at, last, nil
	}
	return nil, time.Time{}, db.Invalid("Invalid %s format: %s. Use ISO 8601 format (YYYY-MM-DD or YYYY-MM-DDTHH:MM)",
		field, db.Short(text))
}

// Storable returns the moment nearest to at that JSON and Postgres can write in every zone: from 0001-01-01T00:00:00Z
// to 9999-12-30T23:59:59.999999Z.
func Storable(at time.Time) time.Time {
	first := time.Date(1, time.January, 1, 0, 0, 0, 0, time.UTC)
	last := time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC).Add(-db.Resolution)
	switch {
	case at.Before(first):
		return first
	case at.After(last):
		return last
	}
	return at
}

// storable is Storable, and nil for nil.
func storable(at *time.Time) *time.Time {
	if at == nil {
		return nil
	}
	return new(Storable(*at))
}
