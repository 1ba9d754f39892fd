package recall

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// date is a time that a text names: a day, a month or a year. What it does not name is 0.
type date struct {
	year  int
	month time.Month
	day   int
}

func (d date) holds(t time.Time) bool {
	return (d.year == 0 || d.year == t.Year()) && (d.month == 0 || d.month == t.Month()) && (d.day == 0 || d.day == t.Day())
}

func (d date) bonus() float64 {
	switch {
	case d.day != 0:
		return dayBonus
	case d.month != 0:
		return monthBonus
	}
	return yearBonus
}

const monthName = `(jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march|april|june|july|august|september|october|november|december)\.?`

// Forms of dates, the most exact first; a text that one took is not read by the next. A bare "may" or "march" is a word; after "in" or
// with a year it is a month.
var dateForms = []struct {
	form *regexp.Regexp
	read func(found []string) date
}{
	{regexp.MustCompile(`(?i)\b((?:19|20)\d\d)-(\d\d)-(\d\d)`), func(f []string) date { return dateOf(f[1], f[2], f[3]) }},
	{regexp.MustCompile(`(?i)\b(\d{1,2})(?:st|nd|rd|th)?(?: of)? ` + monthName + `(?:,? ((?:19|20)\d\d))?\b`), func(f []string) date { return dateOf(f[3], f[2], f[1]) }},
	{regexp.MustCompile(`(?i)\b` + monthName + ` (\d{1,2})(?:st|nd|rd|th)?\b(?:,? ((?:19|20)\d\d))?\b`), func(f []string) date { return dateOf(f[3], f[1], f[2]) }},
	{regexp.MustCompile(`(?i)\b` + monthName + `,?(?: of)? ((?:19|20)\d\d)\b`), func(f []string) date { return dateOf(f[2], f[1], "") }},
	{regexp.MustCompile(`\b((?:19|20)\d\d)-(\d\d)\b`), func(f []string) date { return dateOf(f[1], f[2], "") }},
	{regexp.MustCompile(`(?i)\b(?:in|since|until|during|last|this|of|by|early|late|mid) ` + monthName + `\b`), func(f []string) date { return dateOf("", f[1], "") }},
	{regexp.MustCompile(`(?i)\b(january|february|april|june|july|august|september|october|november|december)\b`), func(f []string) date { return dateOf("", f[1], "") }},
	{regexp.MustCompile(`\b((?:19|20)\d\d)\b`), func(f []string) date { return dateOf(f[1], "", "") }},
}

// datesIn are the times that a text names in English or in ISO 8601.
func datesIn(text string) (dates []date) {
	for _, f := range dateForms {
		text = f.form.ReplaceAllStringFunc(text, func(match string) string {
			d := f.read(f.form.FindStringSubmatch(match))
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
