package document

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/xuri/excelize/v2"
)

// numberFormat is a number format of Excel that the library shows wrongly: as pieces, each a code such as "hh" or a
// text in quotes.
type numberFormat []string

var (
	numberPiece = regexp.MustCompile(`(?i)"[^"]*"|\\.|_.|\*.|\[[^\]]*\]|am/pm|a/p|y+|b+|m+|d+|h+|s+|\.0+|.`)
	elapsed     = regexp.MustCompile(`(?i)^\[(h+|m+|s+)\]$`)
	fraction    = regexp.MustCompile(`^[#0? ]*?([#0?]*) ?[#0?]+/([#0?]+|[1-9]\d*)$`)
)

// misread returns a format if the library shows it wrongly: hours beyond a day, parts of a second, fractions, years of
// the Buddhist calendar, and names of some languages. It returns nil for any other, and an empty format for one that
// hides every number.
func misread(code string) numberFormat {
	if code != "" && strings.Trim(code, "; ") == "" {
		return numberFormat{}
	}
	code, _, _ = strings.Cut(code, ";")
	if fraction.MatchString(strings.TrimSpace(code)) {
		return numberFormat{strings.TrimSpace(code)}
	}
	pieces := numberPiece.FindAllString(code, -1)
	isTime, isOdd, isDate := false, false, false
	for i, piece := range pieces {
		switch strings.ToLower(piece[:1]) {
		case "h", "s":
			isTime, isDate = true, true
		case "y", "m", "d":
			isDate = true
		case "b":
			isOdd = true
		case "[":
			isOdd = isOdd || elapsed.MatchString(piece)
		case ".":
			isOdd = isOdd || len(piece) > 1 && i > 0 && strings.HasPrefix(strings.ToLower(pieces[i-1]), "s")
		case "0", "#", "?", "g":
			return nil
		}
		isTime = isTime || elapsed.MatchString(piece)
	}
	if names, years := numberFormat(pieces).language(); isDate && (names != nil || years > 0) {
		return pieces
	}
	if !isOdd || !isTime && !strings.Contains(strings.ToLower(code), "bb") {
		return nil
	}
	return pieces
}

// show returns a number in the format. days is how many days the workbook's calendar begins after 1900.
func (f numberFormat) show(value float64, days int) string {
	if len(f) == 0 {
		return ""
	}
	if len(f) == 1 && strings.Contains(f[0], "/") {
		return showFraction(value, f[0])
	}
	places := 0 // of a second
	for _, piece := range f {
		if piece[0] == '.' {
			places = max(places, len(piece)-1)
		}
	}
	unit := math.Pow10(min(places, 9))
	ticks := math.Round(math.Abs(value) * 86400 * unit)
	seconds := math.Floor(ticks / unit)
	part := fmt.Sprintf("%0*.0f", places, ticks-seconds*unit)
	date, err := excelize.ExcelDateToTime(math.Floor((seconds+0.5)/86400)+float64(days), false)
	if err != nil {
		date = time.Time{}
	}
	clock := time.Duration(math.Mod(seconds, 86400)) * time.Second
	at := date.Truncate(24 * time.Hour).Add(clock)
	var b strings.Builder
	if value < 0 {
		b.WriteString("-")
	}
	afterHours := false
	for i, piece := range f {
		lower := strings.ToLower(piece)
		b.WriteString(f.piece(piece, part, seconds, at, afterHours || f.beforeSeconds(i)))
		switch isElapsed := elapsed.MatchString(lower); {
		case lower[0] == 'h' || isElapsed:
			afterHours = true
		case strings.Contains("ymdbs", lower[:1]):
			afterHours = false
		}
	}
	return strings.TrimSpace(b.String())
}

// beforeSeconds reports whether the next code behind a piece is that of seconds.
func (f numberFormat) beforeSeconds(i int) bool {
	for _, piece := range f[i+1:] {
		switch strings.ToLower(piece[:1]) {
		case "s":
			return true
		case "y", "m", "d", "h", "b":
			return false
		case "[":
			return strings.EqualFold(piece, "[s]") || strings.EqualFold(piece, "[ss]")
		}
	}
	return false
}

// piece returns what one code shows.
func (f numberFormat) piece(piece, part string, seconds float64, at time.Time, isMinute bool) string {
	lower := strings.ToLower(piece)
	if m := elapsed.FindStringSubmatch(lower); m != nil {
		return fmt.Sprintf("%0*.0f", len(m[1]), math.Floor(seconds/map[byte]float64{'h': 3600, 'm': 60, 's': 1}[m[1][0]]))
	}
	two := func(n int) string { return fmt.Sprintf("%0*d", min(len(lower), 2), n) }
	switch lower[0] {
	case '"':
		return strings.Trim(piece, `"`)
	case '\\':
		return piece[1:]
	case '_', '*':
		return " "
	case '[', '@':
		return ""
	case '.':
		if len(lower) == 1 {
			return "."
		}
		return "." + part
	case 'b':
		return strconv.Itoa(at.Year() + buddhistYears)
	case 'y':
		_, ahead := f.language()
		if len(lower) > 2 {
			return strconv.Itoa(at.Year() + ahead)
		}
		return fmt.Sprintf("%02d", (at.Year()+ahead)%100)
	case 'm':
		if isMinute {
			return two(at.Minute())
		}
		if len(lower) < 3 {
			return two(int(at.Month()))
		}
		names, _ := f.language()
		return names.month(at, len(lower))
	case 'd':
		if len(lower) < 3 {
			return two(at.Day())
		}
		names, _ := f.language()
		return names.day(at, len(lower) == 3)
	case 'h':
		if f.isHalfDay() {
			return two((at.Hour()+11)%12 + 1)
		}
		return two(at.Hour())
	case 's':
		return two(at.Second())
	case 'a':
		if len(lower) > 1 {
			return at.Format("PM")
		}
	}
	return piece
}

// isHalfDay reports whether hours count to 12.
func (f numberFormat) isHalfDay() bool {
	for _, piece := range f {
		if strings.EqualFold(piece, "am/pm") || strings.EqualFold(piece, "a/p") {
			return true
		}
	}
	return false
}

// showFraction returns a number as a fraction, such as 5 1/4.
func showFraction(value float64, code string) string {
	m := fraction.FindStringSubmatch(code)
	whole, rest := math.Modf(math.Abs(value))
	if m[1] == "" {
		whole, rest = 0, math.Abs(value)
	}
	least, most := 1, int(math.Pow10(min(len(m[2]), 4)))-1
	if fixed, err := strconv.Atoi(m[2]); err == nil && fixed > 0 {
		least, most = fixed, fixed
	}
	over, under := 0, least
	for n := least; n <= most; n++ {
		near := math.Round(rest * float64(n))
		if n == least || math.Abs(near/float64(n)-rest) < math.Abs(float64(over)/float64(under)-rest)-1e-12 {
			over, under = int(near), n
		}
	}
	sign := ""
	if value < 0 {
		sign = "-"
	}
	switch {
	case over == 0:
		return sign + strconv.FormatFloat(whole, 'f', 0, 64)
	case over == under && m[1] != "":
		return sign + strconv.FormatFloat(whole+1, 'f', 0, 64)
	case whole == 0:
		return fmt.Sprintf("%s%d/%d", sign, over, under)
	}
	return fmt.Sprintf("%s%.0f %d/%d", sign, whole, over, under)
}
