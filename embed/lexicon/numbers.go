package lexicon

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Numbers that people write in several ways have a term of their own, so that all ways meet: days, quarters of a year,
// ISBNs and codes of articles, and telephone numbers. None of them goes over the end of a line.

// eachNumber finds the terms of the number that begins with the digit at text[i:], besides its digits.
func eachNumber(text string, i int, found func(word)) {
	if i > 0 && (isDigit(text[i-1]) || isLetter(text[i-1])) {
		return
	}
	if day := dayAt(text, i); day != "" {
		found(word{day, -1})
		return
	}
	if quarter := quarterAt(text, i); quarter != "" {
		found(word{quarter, -1})
		return
	}
	for _, code := range codesAt(text, i) {
		found(word{code, -1})
	}
}

// calendarWords are the words of dates.txt.
type calendarWords struct {
	months, ordinals map[string]int // word → number, from 1
	quarters         map[string]bool
}

var calendar = sync.OnceValue(func() (c calendarWords) {
	c = calendarWords{map[string]int{}, map[string]int{}, map[string]bool{}}
	ordinals := map[string]int{"first": 1, "second": 2, "third": 3, "fourth": 4}
	for words := range readLines(datesFile) {
		month, _ := strconv.Atoi(words[0])
		for _, w := range words[1:] {
			switch {
			case month > 0:
				c.months[w] = month
			case words[0] == "quarter":
				c.quarters[w] = true
			default:
				c.ordinals[w] = ordinals[words[0]]
			}
		}
	}
	return c
})

// digitsAt returns how many digits begin at text[i:].
func digitsAt(text string, i int) (n int) {
	for i+n < len(text) && isDigit(text[i+n]) {
		n++
	}
	return n
}

// wordAfter returns the next word after text[:i] in lower case without diacritics, and where it ends. Between them are
// only spaces and the given signs.
func wordAfter(text string, i int, signs string) (string, int) {
	for i < len(text) && (text[i] == ' ' || strings.IndexByte(signs, text[i]) >= 0) {
		i++
	}
	end := i
	for end < len(text) && end-i < maxDateWord {
		r, size := utf8.DecodeRuneInString(text[end:])
		if !unicode.IsLetter(r) && !unicode.IsMark(r) {
			break
		}
		end += size
	}
	return bare(strings.ToLower(text[i:end])), end
}

// wordBefore returns the word before text[i:] in lower case without diacritics, and where it begins. Between them are
// only spaces and the given signs. The word may have digits.
func wordBefore(text string, i int, signs string) (string, int) {
	for i > 0 && (text[i-1] == ' ' || strings.IndexByte(signs, text[i-1]) >= 0) {
		i--
	}
	end := i
	for i > 0 && end-i < maxDateWord {
		r, size := utf8.DecodeLastRuneInString(text[:i])
		if !unicode.IsLetter(r) && !unicode.IsMark(r) && !unicode.IsDigit(r) {
			break
		}
		i -= size
	}
	return bare(strings.ToLower(text[i:end])), i
}

// maxDateWord is the most bytes of a word of a date.
const maxDateWord = 32

// yearAt reports whether a year begins at text[i:].
func yearAt(text string, i int) bool {
	return digitsAt(text, i) == 4 && (text[i:i+2] == "19" || text[i:i+2] == "20")
}

// dayTerm returns the term of a day; "" if there is no such day.
func dayTerm(year string, month, day int) string {
	if month < 1 || month > 12 || day < 1 || day > 31 {
		return ""
	}
	return fmt.Sprintf("%s%02d%02d", year, month, day)
}

// dayAt returns the term of the day of which a date at text[i:] is, such as 20250415; "" if there is no date. i is
// where the first number of the date begins. A day that begins or ends a range is none.
func dayAt(text string, i int) string {
	var day string
	var end int
	switch n := digitsAt(text, i); {
	case n == 4 && yearAt(text, i):
		day, end = yearFirst(text, i)
	case n <= 2:
		if day, end = yearLast(text, i, n); day == "" {
			day, end = dayWithMonth(text, i, n)
		}
	}
	if day == "" || endsRange(text, i) || beginsRange(text, end) {
		return ""
	}
	return day
}

// yearFirst reads 2025-04-15.
func yearFirst(text string, i int) (string, int) {
	month, day := i+5, 0
	n := digitsAt(text, min(month, len(text)))
	if n == 0 || n > 2 || strings.IndexByte("-/.", text[i+4]) < 0 {
		return "", 0
	}
	if day = month + n + 1; day >= len(text) || text[day-1] != text[i+4] {
		return "", 0
	}
	m := digitsAt(text, day)
	if m == 0 || m > 2 {
		return "", 0
	}
	return dayTerm(text[i:i+4], number(text[month:month+n]), number(text[day:day+m])), day + m
}

// yearLast reads 15.04.2025, 15/4/2025 and, if there is no 15th month, 4/15/2025. n is how many digits the first number
// has.
func yearLast(text string, i, n int) (string, int) {
	second := i + n + 1
	if second >= len(text) || strings.IndexByte("./-", text[second-1]) < 0 {
		return "", 0
	}
	m := digitsAt(text, second)
	year := second + m + 1
	if m == 0 || m > 2 || year >= len(text) || text[year-1] != text[second-1] || !yearAt(text, year) {
		return "", 0
	}
	a, b := number(text[i:i+n]), number(text[second:second+m])
	if b > 12 {
		a, b = b, a
	}
	return dayTerm(text[year:year+4], b, a), year + 4
}

// dayWithMonth reads 15 April 2025, 15th of April, 2025 and April 15, 2025. n is how many digits the day has.
func dayWithMonth(text string, i, n int) (string, int) {
	day, end := number(text[i:i+n]), i+n
	if w, e := wordAfter(text, end, ""); e-end == 2 && (w == "st" || w == "nd" || w == "rd" || w == "th" || w == "er") {
		end = e
	}
	month, before := 0, false
	word, e := wordAfter(text, end, ".")
	if word == "of" || word == "de" {
		word, e = wordAfter(text, e, "")
	}
	if month = calendar().months[word]; month == 0 {
		word, _ = wordBefore(text, i, ".")
		month, e, before = calendar().months[word], end, true
	}
	for e < len(text) && strings.IndexByte(" .,", text[e]) >= 0 {
		e++
	}
	if word, after := wordAfter(text, e, ""); !before && (word == "of" || word == "de") {
		e = min(after+1, len(text))
	}
	if month == 0 || !yearAt(text, e) {
		return "", 0
	}
	return dayTerm(text[e:e+4], month, day), e + 4
}

func number(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

// endsRange reports whether a range ends with the date at text[i:].
func endsRange(text string, i int) bool {
	before := strings.TrimRight(text[:i], " ")
	rest := strings.TrimRight(before, "-–—")
	if rest != before {
		r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(rest, " ."))
		return unicode.IsDigit(r) || unicode.IsLetter(r)
	}
	word, at := wordBefore(text, i, "")
	if !rangeWords[word] {
		return false
	}
	r, _ := utf8.DecodeLastRuneInString(strings.TrimRight(text[:at], " ."))
	previous, _ := wordBefore(text, at, ".")
	return unicode.IsDigit(r) || calendar().months[previous] > 0
}

// beginsRange reports whether a range begins with the date that ends before text[i:].
func beginsRange(text string, i int) bool {
	rest := strings.TrimLeft(text[i:min(len(text), i+maxDateWord)], " ")
	if after := strings.TrimLeft(rest, "-–—"); after != rest {
		r, _ := utf8.DecodeRuneInString(strings.TrimLeft(after, " "))
		return unicode.IsDigit(r)
	}
	word, end := wordAfter(text, i, "")
	if !rangeWords[word] {
		return false
	}
	r, _ := utf8.DecodeRuneInString(strings.TrimLeft(text[end:], " "))
	return unicode.IsDigit(r)
}

// rangeWords stand between the first and the last day of a range.
var rangeWords = map[string]bool{"to": true, "until": true, "till": true, "through": true, "bis": true, "au": true,
	"al": true, "hasta": true, "ate": true, "tot": true, "til": true, "do": true}

// quarterAt returns the term of the quarter of the year at text[i:], such as 2025q3, whose name stands before or after
// the year; "" if there is none.
func quarterAt(text string, i int) string {
	if !yearAt(text, i) {
		return ""
	}
	year := text[i : i+4]
	if after := strings.TrimLeft(text[i+4:min(len(text), i+8)], " -/"); len(after) >= 2 && after[0]|0x20 == 'q' &&
		after[1] >= '1' && after[1] <= '4' && (len(after) == 2 || !isDigit(after[2])) {
		return year + "q" + after[1:2]
	}
	word, at := wordBefore(text, i, ",/-'")
	if word == "of" || word == "de" || word == "du" {
		word, at = wordBefore(text, at, "")
	}
	if len(word) == 2 && word[0] == 'q' && word[1] >= '1' && word[1] <= '4' {
		return year + word
	}
	if !calendar().quarters[word] {
		return ""
	}
	ordinal, _ := wordBefore(text, at, ".")
	n := calendar().ordinals[ordinal]
	if len(ordinal) > 0 && ordinal[0] >= '1' && ordinal[0] <= '4' && (len(ordinal) == 1 || !isDigit(ordinal[1])) {
		n = number(ordinal[:1])
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%sq%d", year, n)
}

// Bounds of codes.
const (
	maxCodeGroups = 6
	maxCodeDigits = 15
	leastPhone    = 7 // digits
	phoneTail     = 8 // digits that are the same with a country's code and without
)

// codesAt returns the digits of the ISBN, code of an article or telephone number at text[i:], without signs between
// them.
func codesAt(text string, i int) (all []string) {
	if i > 1 && strings.IndexByte(" -./)", text[i-1]) >= 0 && isDigit(text[i-2]) {
		return nil // in the middle of a number
	}
	digits, sizes := codeDigits(text, i)
	isPhone := i > 0 && (text[i-1] == '+' || text[i-1] == '(') || len(sizes) > 0 && sizes[0] > 1 && text[i] == '0' ||
		len(sizes) == 3 && sizes[0] == 3 && sizes[1] == 3 && sizes[2] == 4
	switch {
	case len(sizes) > 1 && isISBN(digits):
		all = append(all, digits, "978"+digits[:9]+check13("978"+digits[:9]))
	case len(sizes) > 1 && (len(digits) == 13 || len(digits) == 12) && isArticle(digits):
		if all = append(all, digits); strings.HasPrefix(digits, "978") {
			all = append(all, digits[3:12]+check10(digits[3:12]))
		}
	case isPhone && len(digits) >= leastPhone && isDigits(digits):
		if len(sizes) > 1 {
			all = append(all, digits)
		}
		if len(digits) > phoneTail {
			all = append(all, "tel"+digits[len(digits)-phoneTail:])
		}
	}
	return all
}

// codeDigits returns the digits that begin at text[i:], up to the first sign that stands in no code, and the sizes of
// their groups. A last X is of an ISBN. There are none if there are too many.
func codeDigits(text string, i int) (digits string, sizes []int) {
	var b strings.Builder
	for {
		n := digitsAt(text, i)
		b.WriteString(text[i : i+n])
		i += n
		sizes = append(sizes, n)
		if len(sizes) > maxCodeGroups || b.Len() > maxCodeDigits {
			return "", nil
		}
		next := i
		for next < len(text) && next-i < 2 && strings.IndexByte(" -./()", text[next]) >= 0 {
			next++
		}
		if b.Len() == 9 && next < len(text) && next-i < 2 && text[next]|0x20 == 'x' &&
			(next+1 == len(text) || !isLetter(text[next+1]) && !isDigit(text[next+1])) {
			return b.String() + "x", append(sizes, 1)
		}
		if next == i || next == len(text) || !isDigit(text[next]) {
			break
		}
		i = next
	}
	if i < len(text) && isLetter(text[i]) {
		return "", nil
	}
	return b.String(), sizes
}

// isISBN reports whether ten digits, the last one perhaps x, are an ISBN.
func isISBN(digits string) bool { return len(digits) == 10 && check10(digits[:9]) == digits[9:] }

// isArticle reports whether 12 or 13 digits are the code of an article: a UPC or EAN, such as an ISBN of 13 digits.
func isArticle(digits string) bool {
	if !isDigits(digits) {
		return false
	}
	digits = strings.Repeat("0", 13-len(digits)) + digits
	return check13(digits[:12]) == digits[12:]
}

// check10 returns the last character of the ISBN that begins with nine digits.
func check10(digits string) string {
	sum := 0
	for i := range len(digits) {
		sum += (10 - i) * int(digits[i]-'0')
	}
	if c := (11 - sum%11) % 11; c < 10 {
		return strconv.Itoa(c)
	}
	return "x"
}

// check13 returns the last digit of the code that begins with twelve digits.
func check13(digits string) string {
	sum := 0
	for i := range len(digits) {
		sum += (1 + 2*(i%2)) * int(digits[i]-'0')
	}
	return strconv.Itoa((10 - sum%10) % 10)
}
