package document

import (
	"regexp"
	"strconv"
	"strings"
)

// listPlace is the list of a paragraph, and its level there, from 0.
type listPlace struct {
	num   string
	level int
}

// noList is the place of a paragraph without list properties. Paragraphs in list "0" are explicitly in no list.
var noList listPlace

// listPlaceOf returns the place in a paragraph's properties.
func listPlaceOf(props *tree) listPlace {
	place := props.at("w:numPr")
	return listPlace{place.val("w:numId"), min(max(number(place.val("w:ilvl"), 0), 0), maxListLevels-1)}
}

// maxListLevels is how many levels Word knows.
const maxListLevels = 9

// wordLists counts the items of a document's lists.
type wordLists struct {
	abstract map[string]*abstractList
	nums     map[string]*wordList
}

// abstractList has the levels of a list and counts its items. Several Word lists may share one.
type abstractList struct {
	levels [maxListLevels]listLevel
	counts [maxListLevels]int
	begun  [maxListLevels]bool
}

type listLevel struct {
	format, text string // such as "decimal" and "%1."
	start        int
}

const maxLevelTextBytes = 100

type wordList struct {
	abstract  string
	overrides map[int]int // level → its first number, for levels that start again
	begun     bool
}

func readWordLists(a *archive, part string) (*wordLists, error) {
	l := &wordLists{abstract: map[string]*abstractList{}, nums: map[string]*wordList{}}
	return l, a.find(part, "w:numbering", func(x *xmlReader, _ element) error {
		return x.each(func(e element) error { return x.tree(e, l.add) })
	})
}

// add adds a list, or an abstract list that several lists share.
func (l *wordLists) add(t *tree) {
	switch t.name {
	case "w:abstractNum":
		abstract := &abstractList{}
		l.abstract[t.attr("w:abstractNumId")] = abstract
		for _, level := range t.all("w:lvl") {
			if n := number(level.attr("w:ilvl"), -1); n >= 0 && n < maxListLevels {
				text := level.val("w:lvlText")
				abstract.levels[n] = listLevel{level.val("w:numFmt"), text[:min(len(text), maxLevelTextBytes)],
					number(level.val("w:start"), 1)}
			}
		}
	case "w:num":
		list := &wordList{abstract: t.val("w:abstractNumId"), overrides: map[int]int{}}
		l.nums[t.attr("w:numId")] = list
		for _, override := range t.all("w:lvlOverride") {
			if override.at("w:startOverride") != nil {
				list.overrides[number(override.attr("w:ilvl"), 0)] = number(override.val("w:startOverride"), 1)
			}
		}
	}
}

// abstractOf returns the abstract list of a place, or nil.
func (l *wordLists) abstractOf(p listPlace) *abstractList {
	list := l.nums[p.num]
	if list == nil {
		return nil
	}
	return l.abstract[list.abstract]
}

// next counts an item and returns its label: "3.", "(b)", "1.2". The label of a bullet is empty.
func (l *wordLists) next(p listPlace) string {
	list, abstract := l.nums[p.num], l.abstractOf(p)
	if abstract == nil {
		return ""
	}
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

// isUnmarked reports whether a paragraph continues the item before it. It does if its bullet is a blank.
func (l *wordLists) isUnmarked(p listPlace) bool {
	abstract := l.abstractOf(p)
	return abstract != nil && abstract.levels[p.level].format == "bullet" && isBlank(abstract.levels[p.level].text)
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

func (a *abstractList) label(level int) string {
	if format := a.levels[level].format; format == "bullet" || format == "none" {
		return ""
	}
	return strings.TrimSpace(levelMark.ReplaceAllStringFunc(a.levels[level].text, func(mark string) string {
		n := int(mark[1] - '1')
		return inFormat(a.counts[n], a.levels[n].format)
	}))
}

// inFormat returns a number in a numbering format of Word or OpenDocument.
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

// letters counts A to Z, then AA to ZZ, and so on.
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
