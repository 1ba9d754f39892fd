package recall

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// date is a day, a month or a year that a text names. Fields that it does not name are 0.
type date struct {
	year  int
	month time.Month
	day   int
}

// includes reports whether a time is in the day, month or year.
func (d date) includes(t time.Time) bool {
	return (d.year == 0 || d.year == t.Year()) &&
		(d.month == 0 || d.month == t.Month()) &&
		(d.day == 0 || d.day == t.Day())
}

// bonus is what a message of that time gains.
func (d date) bonus() float64 {
	switch {
	case d.day != 0:
		return dayBonus
	case d.month != 0:
		return monthBonus
	}
	return yearBonus
}

const (
	monthName = `(jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march|april|june|july|august|` +
		`september|october|november|december)\.?`
	yearForm = `((?:19|20)\d\d)`
	dayForm  = `(\d{1,2})(?:st|nd|rd|th)?`
)

// dateForms are the forms of dates, the most exact first, with the numbers of the groups that hold the year, the month
// and the day; 0 is none. A later form does not read the text that an earlier one matched. "may" and "march" are months
// only after words such as "in" or with a year.
var dateForms = []struct {
	form             *regexp.Regexp
	year, month, day int
}{
	{regexp.MustCompile(`(?i)\b` + yearForm + `-(\d\d)-(\d\d)`), 1, 2, 3},
	{regexp.MustCompile(`(?i)\b` + dayForm + `(?: of)? ` + monthName + `(?:,? ` + yearForm + `)?\b`), 3, 2, 1},
	{regexp.MustCompile(`(?i)\b` + monthName + ` ` + dayForm + `\b(?:,? ` + yearForm + `)?\b`), 3, 1, 2},
	{regexp.MustCompile(`(?i)\b` + monthName + `,?(?: of)? ` + yearForm + `\b`), 2, 1, 0},
	{regexp.MustCompile(`\b` + yearForm + `-(\d\d)\b`), 1, 2, 0},
	{regexp.MustCompile(`(?i)\b(?:in|since|until|during|last|this|of|by|early|late|mid) ` + monthName + `\b`), 0, 1, 0},
	{regexp.MustCompile(`(?i)\b(january|february|april|june|july|august|september|october|november|december)\b`), 0, 1, 0},
	{regexp.MustCompile(`\b` + yearForm + `\b`), 1, 0, 0},
}

// datesIn returns the dates that a text names in English or in ISO 8601.
func datesIn(text string) (dates []date) {
	for _, f := range dateForms {
		text = f.form.ReplaceAllStringFunc(text, func(match string) string {
			groups := f.form.FindStringSubmatch(match)
			groups[0] = "" // of what the form does not name
			d := dateOf(groups[f.year], groups[f.month], groups[f.day])
			if d == (date{}) || d.day > 31 || d.month > time.December {
				return match
			}
			dates = append(dates, d)
			return " "
		})
	}
	return dates
}

func dateOf(year, month, day string) date {
	y, _ := strconv.Atoi(year) // "" is 0
	d, _ := strconv.Atoi(day)
	m, err := strconv.Atoi(month)
	if err != nil && len(month) >= 3 {
		m = 1 + strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower(month[:3]))/3
	}
	return date{year: y, month: time.Month(m), day: d}
}
