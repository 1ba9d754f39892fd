package recall_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

func TestTimesAreReadAsTheyAreWritten(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	santiago, err := time.LoadLocation("America/Santiago")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, text string
		zone       *time.Location
		start, end string // RFC 3339
	}{
		{"a date is a day", "2026-01-31", nil, "2026-01-31T00:00:00Z", "2026-01-31T23:59:59.999999Z"},
		{"a day is the zone's", "2026-01-31", berlin, "2026-01-31T00:00:00+01:00", "2026-01-31T23:59:59.999999+01:00"},
		{"a day when the clock goes forward has 23 hours", "2026-03-29", berlin, "2026-03-29T00:00:00+01:00",
			"2026-03-29T23:59:59.999999+02:00"},
		{"a day when the clock goes back has 25 hours", "2026-10-25", berlin, "2026-10-25T00:00:00+02:00",
			"2026-10-25T23:59:59.999999+01:00"},
		{"a day that begins at 01:00", "2026-09-06", santiago, "2026-09-06T01:00:00-03:00",
			"2026-09-06T23:59:59.999999-03:00"},
		{"the day before", "2026-09-05", santiago, "2026-09-05T00:00:00-04:00", "2026-09-05T23:59:59.999999-04:00"},
		{"a leap day", "2024-02-29", nil, "2024-02-29T00:00:00Z", "2024-02-29T23:59:59.999999Z"},
		{"a minute", "2026-01-31T18:05", nil, "2026-01-31T18:05:00Z", "2026-01-31T18:05:59.999999Z"},
		{"a minute of the zone", "2026-07-01T18:05", berlin, "2026-07-01T18:05:00+02:00", "2026-07-01T18:05:59.999999+02:00"},
		{"a second", "2026-01-31T18:05:07", nil, "2026-01-31T18:05:07Z", "2026-01-31T18:05:07.999999Z"},
		{"a second as messages show it", "2026-01-31T18:05:07+00:00", berlin, "2026-01-31T18:05:07Z",
			"2026-01-31T18:05:07.999999Z"},
		{"a moment, as clients write it", "2019-12-27T18:11:19.117Z", berlin, "2019-12-27T18:11:19.117Z",
			"2019-12-27T18:11:19.117Z"},
		{"an offset", "2026-01-31T18:05-05:30", nil, "2026-01-31T18:05:00-05:30", "2026-01-31T18:05:59.999999-05:30"},
		{"an offset without its colon", "2026-01-31T18:05:00+0200", nil, "2026-01-31T18:05:00+02:00",
			"2026-01-31T18:05:00.999999+02:00"},
		{"an offset of hours", "2026-01-31T18:05:00+02", nil, "2026-01-31T18:05:00+02:00",
			"2026-01-31T18:05:00.999999+02:00"},
		{"a space, small letters, and space around", " 2026-01-31 18:05z ", nil, "2026-01-31T18:05:00Z",
			"2026-01-31T18:05:59.999999Z"},
	} {
		start, err := recall.ParseStart(c.text, c.zone)
		if err != nil || start == nil || !start.Equal(moment(t, c.start)) {
			t.Errorf("%s: %q starts at %v (%v), want %s", c.name, c.text, start, err, c.start)
		}
		end, err := recall.ParseEnd(c.text, c.zone)
		if err != nil || end == nil || !end.Equal(moment(t, c.end)) {
			t.Errorf("%s: %q ends at %v (%v), want %s", c.name, c.text, end, err, c.end)
		}
	}
}

// The first and last days of the calendar, and times that an offset moves beyond them, are read like other times.
func TestTimesAtTheEndsOfTheCalendarAreTheNearestThatCanBeStored(t *testing.T) {
	t.Parallel()
	const first, last = "0001-01-01T00:00:00Z", "9999-12-30T23:59:59.999999Z"
	for _, c := range []struct{ text, start, end, until string }{
		{"9999-12-31", last, last, last},
		{"9999-12-31T23:59", last, last, last},
		{"9999-12-31T23:59:59Z", last, last, last},
		{"9999-12-31T23:59:59.999999-14:00", last, last, last},
		{"9999-12-30", "9999-12-30T00:00:00Z", last, last},
		{"9999-12-29", "9999-12-29T00:00:00Z", "9999-12-29T23:59:59.999999Z", "9999-12-30T00:00:00Z"},
		{"0001-01-01T00:00:00+14:00", first, first, first},
		{"0001-01-01", first, "0001-01-01T23:59:59.999999Z", "0001-01-02T00:00:00Z"},
		{"0000-01-01", first, first, first},
	} {
		for what, bound := range map[string]struct {
			parse func(string, *time.Location) (*time.Time, error)
			want  string
		}{"start": {recall.ParseStart, c.start}, "end": {recall.ParseEnd, c.end}, "until": {recall.ParseUntil, c.until}} {
			if at, err := bound.parse(c.text, nil); err != nil || at == nil || !at.Equal(moment(t, bound.want)) {
				t.Errorf("%s as %s: got %v (%v), want %s", c.text, what, at, err, bound.want)
			}
		}
	}
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func TestWhatIsNoTimeIsRefused(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "  "} {
		if start, err := recall.ParseStart(text, nil); start != nil || err != nil {
			t.Errorf("%q: got %v, %v, want neither", text, start, err)
		}
		if end, err := recall.ParseEnd(text, nil); end != nil || err != nil {
			t.Errorf("%q: got %v, %v, want neither", text, end, err)
		}
	}
	for _, text := range []string{"yesterday", "2026-02-30", "2025-02-29", "2026-13-01", "2026-1-1", "01/02/2026",
		"2026-01-31T", "2026-01-31T25:00",
		"2026-01-31T18", "2026-01-31T18:05:61", "2026-01-31T18:05+25:99x", "2026", "1769817600",
		"2026-01-31T18:05 Europe/Berlin", "\x00"} {
		_, err := recall.ParseStart(text, nil)
		want := "Invalid start_date format: " + text + ". Use ISO 8601 format (YYYY-MM-DD or YYYY-MM-DDTHH:MM)"
		if !errors.Is(err, db.ErrInvalid) || err.Error() != want {
			t.Errorf("%q as a start: got %v, want %s", text, err, want)
		}
		_, err = recall.ParseEnd(text, nil)
		want = "Invalid end_date format: " + text + ". Use ISO 8601 format (YYYY-MM-DD or YYYY-MM-DDTHH:MM)"
		if !errors.Is(err, db.ErrInvalid) || err.Error() != want {
			t.Errorf("%q as an end: got %v, want %s", text, err, want)
		}
	}
	if _, err := recall.ParseStart(strings.Repeat("9", 1000), nil); err == nil || len(err.Error()) > 300 {
		t.Errorf("a long text: got %v, want a short sentence", err)
	}
}
