package recall

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/lexicon"
	"github.com/loci-memory/loci/embed/rank"
)

// period is a span of time that a text names: a day, a week, a month or a year.
type period struct {
	from, to time.Time // to is exclusive
	yearly   bool      // the text names no year: the latest year is meant, and other years get a smaller bonus
	bonus    float64   // for messages in the period
}

// bonusAt returns the bonus of a message said at t. Within a day or a week, earlier messages get a little more: they
// name the subject.
func (p period) bonusAt(t time.Time) float64 {
	if !t.Before(p.from) && t.Before(p.to) {
		if p.bonus < dayBonus {
			return p.bonus
		}
		return p.bonus * (1 - t.Sub(p.from).Seconds()/p.to.Sub(p.from).Seconds()/1000)
	}
	if !p.yearly {
		return 0
	}
	p.yearly = false
	bonus := p.bonusAt(t.AddDate(p.from.Year()-t.Year(), 0, 0))
	if p.bonus == onlyTimeBonus {
		return otherYearShare * bonus
	}
	return min(bonus, otherYearBonus)
}

// years returns the period. If the text names no year, it adds the same period of the two years before.
func (p period) years() []period {
	if !p.yearly {
		return []period{p}
	}
	all := []period{p, p, p}
	for i := range all {
		all[i].from, all[i].to = db.DaysAfter(p.from, -i, 0, 0), db.DaysAfter(p.to, -i, 0, 0)
	}
	return all
}

// short reports whether a period is at most a week long. Messages of such periods are found whatever they say.
func (p period) short() bool { return p.to.Sub(p.from) < 8*24*time.Hour }

// most returns how many messages of the period are ranked whatever they say, the earliest first. For a short period
// these are all that offsets reach.
func (p period) most() int {
	if p.short() {
		return 10_000
	}
	return rank.ArmRows
}

const (
	monthName = `(jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec|january|february|march|april|june|july|august|` +
		`september|october|november|december)\.?`
	yearForm    = `((?:19|20)\d\d)`
	dayForm     = `(\d{1,2})(?:st|nd|rd|th)?`
	weekdayName = `(monday|tuesday|wednesday|thursday|friday|saturday|sunday)`
	countForm   = `(\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten)`
)

// dateForm is a form of dates, and how to read what its groups matched.
type dateForm struct {
	form *regexp.Regexp
	read func(groups []string, now time.Time) []period
}

// dateForms are the forms of dates, the most exact first. Text that one form matched is not read by later forms. "may"
// and "march" are months only after words such as "in", or with a year.
var dateForms = []dateForm{
	{regexp.MustCompile(`(?i)\b` + yearForm + `[-/.](\d\d?)[-/.](\d\d?)\b`), calendar(1, 2, 3)},
	{regexp.MustCompile(`\b(\d{1,2})\.(\d{1,2})\.` + yearForm + `\b`), calendar(3, 2, 1)},
	{regexp.MustCompile(`\b(\d{1,2})[-/](\d{1,2})[-/]` + yearForm + `\b`), eitherOrder},
	{regexp.MustCompile(`(?i)\b` + dayForm + `(?: of)? ` + monthName + `(?:,? ` + yearForm + `)?\b`), calendar(3, 2, 1)},
	{regexp.MustCompile(`(?i)\b` + monthName + ` (?:the )?` + dayForm + `\b(?:,? ` + yearForm + `)?\b`),
		calendar(3, 1, 2)},
	{regexp.MustCompile(`(?i)\b` + monthName + `,?(?: of)? ` + yearForm + `\b`), calendar(2, 1, 0)},
	{regexp.MustCompile(`\b` + yearForm + `-(\d\d)\b`), calendar(1, 2, 0)},
	{regexp.MustCompile(`(?i)\b(?:q([1-4])|(first|second|third|fourth|[1-4](?:st|nd|rd|th)) quarter)[,/-]? ?(?:of )?` +
		yearForm + `\b`), quarter(3, 1, 2)},
	{regexp.MustCompile(`(?i)\b` + yearForm + `[-/ ]?q([1-4])\b`), quarter(1, 2, 2)},
	{regexp.MustCompile(`(?i)\bday before yesterday\b`), daysAgo(2)},
	{regexp.MustCompile(`(?i)\b(?:yesterday|last night)\b`), daysAgo(1)},
	{regexp.MustCompile(`(?i)\b(?:today|tonight|this (?:morning|afternoon|evening))\b`), daysAgo(0)},
	{regexp.MustCompile(`(?i)\b` + countForm + ` (day|week|month|year)s? ago\b`), ago},
	{regexp.MustCompile(`(?i)\b(last|past|previous|this) (week|month|year)\b`), relative},
	{regexp.MustCompile(`(?i)\b` + weekdayName + `\b`), weekday},
	{regexp.MustCompile(`(?i)\b(?:in|since|until|during|last|this|of|by|early|late|mid) ` + monthName + `\b`),
		calendar(0, 1, 0)},
	{regexp.MustCompile(`(?i)\b(january|february|april|june|july|august|september|october|november|december)\b`),
		calendar(0, 1, 0)},
	{regexp.MustCompile(`\b` + yearForm + `\b`), calendar(1, 0, 0)},
}

// calendar reads a date by the indexes of the groups for year, month and day. Index 0 means that the form lacks this
// part.
func calendar(year, month, day int) func([]string, time.Time) []period {
	return func(groups []string, now time.Time) []period {
		groups[0] = "" // index 0 is unused: 0 reads as empty
		return date(groups[year], groups[month], groups[day], now)
	}
}

// eitherOrder reads 4/5/2025 as April 5 and as May 4; 4/15/2025 can only be April 15.
func eitherOrder(groups []string, now time.Time) []period {
	read := date(groups[3], groups[2], groups[1], now)
	if groups[1] == groups[2] {
		return read
	}
	return append(read, date(groups[3], groups[1], groups[2], now)...)
}

// quarter reads a quarter by the indexes of the groups for the year, and for the quarter's number or its name.
func quarter(year, number, name int) func([]string, time.Time) []period {
	return func(groups []string, now time.Time) []period {
		digit := groups[number]
		if digit == "" {
			digit = groups[name][:1] // 3rd
		}
		n, err := strconv.Atoi(digit)
		if err != nil {
			n = 1 + slices.Index([]string{"first", "second", "third", "fourth"}, strings.ToLower(groups[name]))
		}
		y, _ := strconv.Atoi(groups[year])
		return []period{period{from: db.DayOf(y, time.Month(3*n-2), 1, now.Location())}.until(0, 3, 0)}
	}
}

// date returns a date's period in the zone of now; nil if there is no such date. Without a year, it is the latest such
// date that has begun.
func date(year, month, day string, now time.Time) []period {
	y, _ := strconv.Atoi(year) // "" is 0
	d, _ := strconv.Atoi(day)
	m, err := strconv.Atoi(month)
	if err != nil && len(month) >= 3 {
		m = 1 + strings.Index("janfebmaraprmayjunjulaugsepoctnovdec", strings.ToLower(month[:3]))/3
	}
	if y == 0 && m == 0 || day != "" && d == 0 {
		return nil
	}
	p := period{yearly: y == 0}
	if p.yearly {
		y = now.Year()
	}
	p.from = db.DayOf(y, time.Month(max(m, 1)), max(d, 1), now.Location())
	if p.from.Month() != time.Month(max(m, 1)) || p.from.Day() != max(d, 1) {
		return nil
	}
	if p.yearly && p.from.After(now) {
		p.from = db.DaysAfter(p.from, -1, 0, 0)
	}
	switch {
	case d != 0:
		return []period{p.until(0, 0, 1)}
	case m != 0:
		return []period{p.until(0, 1, 0)}
	}
	return []period{p.until(1, 0, 0)}
}

// until sets the period's length, which fixes its bonus.
func (p period) until(years, months, days int) period {
	p.to = db.DaysAfter(p.from, years, months, days)
	switch {
	case years > 0:
		p.bonus = yearBonus
	case months > 0:
		p.bonus = monthBonus
	default:
		p.bonus = dayBonus
	}
	return p
}

func today(now time.Time) time.Time { return db.DaysAfter(now, 0, 0, 0) }

func daysAgo(n int) func([]string, time.Time) []period {
	return func(_ []string, now time.Time) []period {
		return []period{period{from: db.DaysAfter(now, 0, 0, -n)}.until(0, 0, 1)}
	}
}

// counts are the words for numbers in countForm; the index is the number.
var counts = []string{"", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"}

// ago reads phrases like "three days ago": that day, or that week, month or year.
func ago(groups []string, now time.Time) []period {
	n, err := strconv.Atoi(groups[1])
	if err != nil {
		n = max(slices.Index(counts, strings.ToLower(groups[1])), 1) // "a" is one
	}
	return []period{unit(groups[2], -n, now)}
}

func relative(groups []string, now time.Time) []period {
	n := -1
	if strings.EqualFold(groups[1], "this") {
		n = 0
	}
	return []period{unit(groups[2], n, now)}
}

// unit returns the day, week (from Monday), month or year that is n of them away from the present one.
func unit(name string, n int, now time.Time) period {
	day := today(now)
	switch strings.ToLower(name) {
	case "week":
		return period{from: db.DaysAfter(day, 0, 0, 7*n-(int(day.Weekday())+6)%7)}.until(0, 0, 7)
	case "month":
		return period{from: db.DaysAfter(day, 0, n, 1-day.Day())}.until(0, 1, 0)
	case "year":
		return period{from: db.DayOf(day.Year()+n, 1, 1, day.Location())}.until(1, 0, 0)
	}
	return period{from: db.DaysAfter(day, 0, 0, n)}.until(0, 0, 1)
}

// weekday reads a day of the week as the latest one before today.
func weekday(groups []string, now time.Time) []period {
	for n := 1; ; n++ {
		if day := db.DaysAfter(now, 0, 0, -n); strings.EqualFold(day.Weekday().String(), groups[1]) {
			return []period{period{from: day}.until(0, 0, 1)}
		}
	}
}

// aboutTime are terms of questions that ask only what was said at a time.
var aboutTime = lexicon.TermIDs("talk chat speak discuss discussion say tell mention ask happen conversation message " +
	"day date time go thing remember recall show list find anything something everything")

// periodsIn returns the times that a text names, in English, in ISO 8601 or in numbers, in the zone of now. If the text
// asks for nothing else, messages of these times come first. A long text takes a while to read: if ctx ends meanwhile,
// it returns ctx's error.
func periodsIn(ctx context.Context, text string, now time.Time) (periods []period, err error) {
	for _, f := range dateForms {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		text = f.form.ReplaceAllStringFunc(text, func(match string) string {
			found := f.read(f.form.FindStringSubmatch(match), now)
			if len(found) == 0 {
				return match
			}
			periods = append(periods, found...)
			return " "
		})
	}
	if !slices.ContainsFunc(lexicon.TermIDs(text), func(t int32) bool { return !slices.Contains(aboutTime, t) }) {
		for i := range periods {
			periods[i].bonus = onlyTimeBonus
		}
	}
	return periods, nil
}
