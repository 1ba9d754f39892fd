package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// number formats a whole number with a comma between groups of three digits.
func number(n any) string {
	text := ""
	switch n := n.(type) {
	case int:
		text = strconv.Itoa(n)
	case int64:
		text = strconv.FormatInt(n, 10)
	case *int64:
		text = strconv.FormatInt(*n, 10)
	case float64:
		text = strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	default:
		return fmt.Sprint(n)
	}
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return sign + text
}

// size formats a number of bytes in a suitable unit.
func size(n any) string {
	value := 0.0
	switch n := n.(type) {
	case int:
		value = float64(n)
	case int64:
		value = float64(n)
	case float64:
		value = n
	}
	for _, unit := range []string{"B", "kB", "MB", "GB"} {
		if value < 1000 {
			return strings.TrimSuffix(strconv.FormatFloat(value, 'f', decimals(value, unit), 64), ".0") + " " + unit
		}
		value /= 1000
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " TB"
}

func decimals(value float64, unit string) int {
	if unit == "B" || value >= 100 {
		return 0
	}
	return 1
}

// ago says how long ago a time was.
func ago(t any) string {
	var moment time.Time
	switch t := t.(type) {
	case time.Time:
		moment = t
	case *time.Time:
		if t == nil {
			return "never"
		}
		moment = *t
	}
	d := time.Since(moment)
	switch {
	case d < -time.Minute:
		return "in " + span(-d)
	case d < 2*time.Second:
		return "now"
	}
	return span(d)
}

// span formats a duration in its largest unit.
func span(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%s days", number(int(d.Hours()/24)))
}

// took formats a duration in seconds.
func took(seconds float64) string {
	switch {
	case seconds < 0.001:
		return fmt.Sprintf("%.1f ms", seconds*1000)
	case seconds < 1:
		return fmt.Sprintf("%.0f ms", seconds*1000)
	case seconds < 120:
		return fmt.Sprintf("%.1f s", seconds)
	}
	return span(time.Duration(seconds * float64(time.Second)))
}

// at formats a time in full, in UTC.
func at(t any) string {
	switch t := t.(type) {
	case time.Time:
		return t.UTC().Format("2006-01-02 15:04:05 UTC")
	case *time.Time:
		if t != nil {
			return at(*t)
		}
	}
	return ""
}

// score formats the score of a search result.
func score(value float64) string { return fmt.Sprintf("%.4f", value) }

// ranked says at which places a search by words and one by meaning have a result; 0 for none.
func ranked(words, meaning int) (text string) {
	if words > 0 {
		text += fmt.Sprintf(" · %d. by words", words)
	}
	if meaning > 0 {
		text += fmt.Sprintf(" · %d. by meaning", meaning)
	}
	return text
}

// prefixed returns a text with a prefix; empty if the text is.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// share formats a part of a whole in percent.
func share(part, whole int) string {
	if whole <= 0 {
		return "0 %"
	}
	percent := 100 * float64(part) / float64(whole)
	if percent > 0 && percent < 1 {
		return "under 1 %"
	}
	return fmt.Sprintf("%.0f %%", percent)
}

// width returns a part of a whole in percent.
func width(part, whole int) float64 {
	if whole <= 0 {
		return 0
	}
	return math.Min(100, math.Round(10000*float64(part)/float64(whole))/100)
}

// clip puts a text on one line, and shortens it to limit characters.
func clip(limit int, text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	return strings.TrimSpace(string([]rune(text)[:limit])) + "…"
}

// plural formats a number with its noun.
func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// pretty indents JSON.
func pretty(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, raw, "", "  ") != nil {
		return string(raw)
	}
	return out.String()
}
