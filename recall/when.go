package recall

import (
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
)

// ParseStart reads the beginning of a stretch of time as a caller wrote it, ISO 8601: a date, or a date and a time to the minute or finer,
// with an offset, with Z, or in zone (nil is UTC). Nil is an empty text's. ErrInvalid if it is none of these.
func ParseStart(text string, zone *time.Location) (*time.Time, error) {
	at, _, err := parseWhen("start_date", text, zone)
	return at, err
}

// ParseEnd reads the end of a stretch of time, as ParseStart reads its beginning. It belongs to the stretch: the end is the last moment of
// the day, of the minute or of the second that the text names.
func ParseEnd(text string, zone *time.Location) (*time.Time, error) {
	at, last, err := parseWhen("end_date", text, zone)
	if at != nil {
		return &last, err
	}
	return nil, err
}

// resolution is the shortest time that Postgres tells apart.
const resolution = time.Microsecond

// whenForms are the times that may follow a date, and how long what they name lasts.
var whenForms = []struct {
	layout string
	lasts  time.Duration
}{
	{"2006-01-02T15:04", time.Minute},
	{"2006-01-02T15:04:05", time.Second},
}

// parseWhen returns the first and the last moment of what a text names; nil if it names nothing.
func parseWhen(field, text string, zone *time.Location) (*time.Time, time.Time, error) {
	if zone == nil {
		zone = time.UTC
	}
	said := strings.ToUpper(strings.TrimSpace(text))
	if said == "" {
		return nil, time.Time{}, nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, said, zone); err == nil {
		return &day, day.AddDate(0, 0, 1).Add(-resolution), nil
	}
	said = strings.Replace(said, " ", "T", 1)
	for _, form := range whenForms {
		for _, offset := range []string{"", "Z07:00", "Z0700", "Z07"} {
			at, err := time.ParseInLocation(form.layout+offset, said, zone)
			if err != nil {
				continue
			}
			if strings.ContainsAny(said, ".,") { // a fraction names a moment
				return &at, at, nil
			}
			return &at, at.Add(form.lasts - resolution), nil
		}
	}
	return nil, time.Time{}, db.Invalid("Invalid %s format: %s. Use ISO 8601 format (YYYY-MM-DD or YYYY-MM-DDTHH:MM)", field, short(text))
}
