package document

import (
	"encoding/xml"
	"regexp"
	"strconv"
	"strings"
)

// listPlace is where a paragraph stands in the lists of a document: which one, and how deep, from 0.
type listPlace struct {
	num   string
	level int
}

// noList is the place of a paragraph that says nothing of lists; "0" is the list of those that say they are in none.
var noList = listPlace{"", -1}

// read reads a paragraph's w:numPr.
func (p *listPlace) read(x *xmlReader) error {
	p.level = max(p.level, 0)
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "w:ilvl":
			p.level = min(max(number(attr(e, "w:val"), 0), 0), maxListLevels-1)
		case "w:numId":
			p.num = attr(e, "w:val")
		}
		return nil
	}, nil)
}

// maxListLevels is how many levels Word knows.
const maxListLevels = 9

// wordLists counts the items of a document's lists.
type wordLists struct {
	abstract map[string]*abstractList
	nums     map[string]*wordList
}

// abstractList is what several lists may share, and count through.
type abstractList struct {
	levels [maxListLevels]listLevel
	counts [maxListLevels]int
	begun  [maxListLevels]bool
}

type listLevel struct {
	format, text string // as "decimal" and "%1."
	start        int
}

type wordList struct {
	abstract  string
	overrides map[int]int // where a level starts again
	begun     bool
}

func readWordLists(a *archive, part string) (*wordLists, error) {
	l := &wordLists{abstract: map[string]*abstractList{}, nums: map[string]*wordList{}}
	return l, a.optional(part, func(x *xmlReader) error {
		return x.find("w:numbering", func(xml.StartElement) error {
			return x.walk(func(e xml.StartElement) error { return l.read(x, e) }, nil)
		})
	})
}

func (l *wordLists) read(x *xmlReader, e xml.StartElement) error {
	switch x.name(e) {
	case "w:abstractNum":
		abstract := &abstractList{}
		l.abstract[attr(e, "w:abstractNumId")] = abstract
		return x.walk(func(e xml.StartElement) error {
			level := number(attr(e, "w:ilvl"), -1)
			if x.name(e) != "w:lvl" || level < 0 || level >= maxListLevels {
				return nil
			}
			return abstract.levels[level].read(x)
		}, nil)
	case "w:num":
		list := &wordList{overrides: map[int]int{}}
		l.nums[attr(e, "w:numId")] = list
		return x.walk(func(e xml.StartElement) error {
			switch x.name(e) {
			case "w:abstractNumId":
				list.abstract = attr(e, "w:val")
			case "w:lvlOverride":
				level := number(attr(e, "w:ilvl"), 0)
				return x.find("w:startOverride", func(e xml.StartElement) error {
					list.overrides[level] = number(attr(e, "w:val"), 1)
					return nil
				})
			}
			return nil
		}, nil)
	}
	return nil
}

func (l *listLevel) read(x *xmlReader) error {
	l.start = 1
	return x.walk(func(e xml.StartElement) error {
		switch x.name(e) {
		case "w:numFmt":
			l.format = attr(e, "w:val")
		case "w:lvlText":
			l.text = attr(e, "w:val")
			l.text = l.text[:min(len(l.text), 100)]
		case "w:start":
			l.start = number(attr(e, "w:val"), 1)
		}
		return nil
	}, nil)
}

// label is what stands before an item: "3.", "(b)", "1.2"; empty for a bullet.
type label string

// next counts an item, and is its label.
func (l *wordLists) next(p listPlace) label {
	list := l.nums[p.num]
	if list == nil || p.level < 0 || l.abstract[list.abstract] == nil {
		return ""
	}
	abstract := l.abstract[list.abstract]
	if !list.begun {
		list.begun = true
		for level, start := range list.overrides {
			if level >= 0 && level < maxListLevels {
				abstract.levels[level].start, abstract.begun[level] = start, false
			}
		}
	}
	abstract.count(p.level)
	return abstract.label(p.level)
}

// isUnmarked tells the paragraphs within an item, that some programs write as items with a blank for a bullet.
func (l *wordLists) isUnmarked(p listPlace) bool {
	list := l.nums[p.num]
	if list == nil || p.level < 0 || l.abstract[list.abstract] == nil {
		return false
	}
	level := l.abstract[list.abstract].levels[p.level]
	return level.format == "bullet" && isBlank(level.text)
}

func (a *abstractList) count(level int) {
	for i := range a.levels {
		switch {
		case i > level:
			a.begun[i] = false
		case !a.begun[i]:
			a.begun[i], a.counts[i] = true, a.levels[i].start
		case i == level:
			a.counts[i]++
		}
	}
}

var levelMark = regexp.MustCompile(`%[1-9]`)

func (a *abstractList) label(level int) label {
	if format := a.levels[level].format; format == "bullet" || format == "none" {
		return ""
	}
	return label(strings.TrimSpace(levelMark.ReplaceAllStringFunc(a.levels[level].text, func(mark string) string {
		of := int(mark[1] - '1')
		return inFormat(a.counts[of], a.levels[of].format)
	})))
}

var plainNumber = regexp.MustCompile(`^[0-9]{1,9}[.)]$`)

// item is a label as Markdown has it: a number is the marker, another label stands after a bullet.
func (l label) item() (marker, text string) {
	if plainNumber.MatchString(string(l)) {
		return string(l), ""
	}
	return "-", string(l)
}

// heading is a label before a heading.
func (l label) heading() string { return string(l) }

// inFormat writes a count as a list does.
func inFormat(n int, format string) string {
	switch format {
	case "lowerLetter", "a":
		return strings.ToLower(letters(n))
	case "upperLetter", "A":
		return letters(n)
	case "lowerRoman", "i":
		return strings.ToLower(roman(n))
	case "upperRoman", "I":
		return roman(n)
	case "decimalZero":
		if n >= 0 && n < 10 {
			return "0" + strconv.Itoa(n)
		}
	}
	return strconv.Itoa(n)
}

// letters counts A to Z, then AA to ZZ and so on.
func letters(n int) string {
	if n < 1 || n > 26*20 {
		return strconv.Itoa(n)
	}
	return strings.Repeat(string(rune('A'+(n-1)%26)), (n-1)/26+1)
}

func roman(n int) string {
	if n < 1 || n > 3999 {
		return strconv.Itoa(n)
	}
	values := []int{1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1}
	marks := []string{"M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"}
	var b strings.Builder
	for i, value := range values {
		for ; n >= value; n -= value {
			b.WriteString(marks[i])
		}
	}
	return b.String()
}
