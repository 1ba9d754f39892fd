package db

import (
	"strings"
	"time"
)

// Resolution is the resolution of Postgres' timestamps.
const Resolution = time.Microsecond

// timeForms are the forms of times that may follow a date, with the duration that each form names.
var timeForms = []struct {
	layout string
	lasts  time.Duration
}{
	{"2006-01-02T15:04", time.Minute},
	{"2006-01-02T15:04:05", time.Second},
}

// Moments returns the first and the last moment of what a text in ISO 8601 names: a day, a minute, a second or, with a
// fraction, a single moment. A time without an offset or Z is in zone. ok is false for any other text.
func Moments(text string, zone *time.Location) (first, last time.Time, ok bool) {
	trimmed := strings.ToUpper(strings.TrimSpace(text))
	if named, err := time.Parse(time.DateOnly, trimmed); err == nil {
		day := DayOf(named.Year(), named.Month(), named.Day(), zone)
		return day, DaysAfter(day, 0, 0, 1).Add(-Resolution), true
	}
	trimmed = strings.Replace(trimmed, " ", "T", 1)
	for _, form := range timeForms {
		for _, offset := range []string{"", "Z07:00", "Z0700", "Z07"} {
			moment, err := time.ParseInLocation(form.layout+offset, trimmed, zone)
			if err != nil {
				continue
			}
			if strings.ContainsAny(trimmed, ".,") { // a time with a fraction names a single moment
				return moment, moment, true
			}
			return moment, moment.Add(form.lasts - Resolution), true
		}
	}
	return time.Time{}, time.Time{}, false
}

// DayOf returns the first moment of a day. Days and months out of range are normalized, as by time.Date. Where clocks
// go forward at midnight, a day begins at 01:00.
func DayOf(year int, month time.Month, day int, zone *time.Location) time.Time {
	begins, wanted := time.Date(year, month, day, 0, 0, 0, 0, zone), time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	if begins.Day() != wanted.Day() {
		_, begins = begins.ZoneBounds()
	}
	return begins
}

// DaysAfter returns the first moment of the day that is so many years, months and days after that of t.
func DaysAfter(t time.Time, years, months, days int) time.Time {
	return DayOf(t.Year()+years, t.Month()+time.Month(months), t.Day()+days, t.Location())
}
