package summary

import (
	"regexp"
	"slices"
	"strings"
)

// lines returns the lines of a text that say something, without the spaces around them.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// statements returns the lines of a result. The lines of a short list of fields, and of a small table, stand on one
// line, so that a value stands with its name.
func statements(text string) (all []string) {
	text = withColumns(text)
	if len(text) <= shortResult {
		if whole := onOneLine(lines(text)); whole != "" {
			return []string{whole}
		}
	}
	var block []string
	form := lineForm{}
	end := func() {
		if joined := joinedBlock(block, form); joined != "" {
			all = append(all, joined)
		} else {
			all = append(all, block...)
		}
		block, form = nil, lineForm{}
	}
	for _, line := range lines(text) {
		next := formOf(line)
		if len(block) > 0 && !next.continues(form) {
			end()
		}
		if block = append(block, line); next.kind != rule {
			form = next
		}
	}
	end()
	return all
}

// lineForm is how a line of a result is built: its kind, and the cells that it has if it is a row.
type lineForm struct {
	kind  lineKind
	cells int
}

type lineKind int

const (
	sentence lineKind = iota
	rule              // between the rows of a table, or their count
	row
	fieldLine // a name and its value, with a sign between
	pair      // a name and its value, with a space between
)

// continues reports whether a line belongs to the block of the line before.
func (f lineForm) continues(before lineForm) bool {
	return f.kind == rule || before.kind == sentence && before.cells < 0 ||
		f == before && f.kind != sentence
}

var (
	// ruleLine matches a line without letters in a table, the number of a record, and the count of rows.
	ruleLine = regexp.MustCompile(`^(?:[\s|+:=─━┼│-]+|-\[ RECORD \d+ \][-+]*|\*+ \d+\. row \*+|\(?\d+ rows?\b.{0,30})$`)
	// pairLine matches a name and a value.
	pairLine = regexp.MustCompile(`^[\pL_][\w.-]*\s+[^\s:=]+$`)
	// commaLine matches a row of values with commas between.
	commaLine = regexp.MustCompile(`^[^\s,][^,]{0,60}(?:,[^\s,][^,]{0,60})+$`)
)

func formOf(line string) lineForm {
	if ruleLine.MatchString(line) {
		return lineForm{rule, 0}
	}
	if isSource(line) || record.MatchString(line) {
		return lineForm{}
	}
	if cells := strings.Split(strings.Trim(line, "| "), "|"); len(cells) > 1 {
		return lineForm{row, len(cells)}
	}
	switch {
	case field.MatchString(line) && !placed.MatchString(line):
		return lineForm{fieldLine, 0}
	case len(columns.Split(line, -1)) > 1:
		return lineForm{row, len(columns.Split(line, -1))}
	case commaLine.MatchString(line):
		return lineForm{row, strings.Count(line, ",") + 1}
	case pairLine.MatchString(line):
		return lineForm{pair, 0}
	}
	return lineForm{}
}

// joinedBlock returns consecutive lines of one form on one line; empty if they are no small table or list of fields.
func joinedBlock(block []string, form lineForm) string {
	if form.kind == sentence || form.kind == rule {
		return ""
	}
	if form.kind == fieldLine && countFunc(block, shortField.MatchString) < len(block) {
		return ""
	}
	if form.kind == pair && 2*countFunc(block, pairValue.MatchString) < len(block) {
		return ""
	}
	return joinedLines(block)
}

// pairValue matches a pair with a digit in its value.
var pairValue = regexp.MustCompile(`^\S+\s+\S*\d`)

func countFunc(all []string, fits func(string) bool) (n int) {
	for _, one := range all {
		if fits(one) {
			n++
		}
	}
	return n
}

// joinedLines returns lines on one line, without what only parts them; empty if they are one line, or too many or too
// long.
func joinedLines(all []string) string {
	var kept []string
	for _, line := range all {
		if !ruleLine.MatchString(line) {
			kept = append(kept, strings.Join(strings.Fields(strings.Trim(line, "| ")), " "))
		}
	}
	joined := strings.Join(kept, lineJoint)
	if len(kept) < 2 || len(kept) > shortLines || len(joined) > shortResult {
		return ""
	}
	return joined
}

// value matches what gives a name a value with a digit.
var value = regexp.MustCompile(`^"?[\pL_][\pL\pM\w. ()/%-]{0,40}"?\s*[:=：]\s*"?[^\s"]*\d[^"]{0,60}"?,?$`)

// record matches a line with a JSON object that has a digit.
var record = regexp.MustCompile(`^\{"[^{}]{0,200}\d[^{}]{0,200}\},?$`)

// lineJoint stands between the lines of a short result on one line.
const lineJoint = "; "

// field matches what gives a name a value.
var field = regexp.MustCompile(`^"?[\pL_][\pL\pM\w. ()/%-]{0,40}"?(?:\s*[=：]\s*|\s?:\s+)\S`)

// shortField matches a field with a name and a value of few words.
var shortField = regexp.MustCompile(`^\S+(?:\s\S+){0,2}?\s*[:=：]\s*(?:\S+\s?){1,5}$`)

// columns matches what parts the columns of a table.
var columns = regexp.MustCompile(`\t| {2,}| \| `)

// onOneLine returns a short result on one line if its lines are of the same thing: fields, perhaps under a title, or
// rows of a table. Otherwise it is empty.
func onOneLine(all []string) string {
	fields, cells := 0, map[int]bool{}
	for _, line := range all {
		if ruleLine.MatchString(line) {
			continue
		}
		if field.MatchString(line) && !placed.MatchString(line) {
			fields++
		}
		cells[len(columns.Split(line, -1))] = true
	}
	isTable := len(cells) == 1 && !cells[1]
	if slices.ContainsFunc(all, isSource) || !isTable && (fields < 2 || fields < len(all)-1) {
		return ""
	}
	return joinedLines(all)
}

// column matches a table with one column, as psql writes it and in a box: its name, and its few values.
var column = regexp.MustCompile(`(?m)^ *(\S[^\n|]*?) *\n *-+ *\n((?: *[^\s|][^\n|]*\n){1,6}) *\(\d+ rows?\)$|` +
	`^\+-+\+\n\| *([^|\n]+?) *\|\n\+-+\+\n((?:\|[^|\n]*\|\n){1,6})\+-+\+$`)

// withColumns returns a text with each such table on one line, its name before its values.
func withColumns(text string) string {
	if !strings.Contains(text, "--") {
		return text
	}
	return column.ReplaceAllStringFunc(text, func(table string) string {
		found := column.FindStringSubmatch(table)
		values := lines(strings.ReplaceAll(found[2]+found[4], "|", " "))
		return found[1] + found[3] + ": " + strings.Join(values, lineJoint)
	})
}

// shortResult and shortLines are how many bytes and lines a table or list has at most that stands on one line.
const (
	shortResult = 280
	shortLines  = 7
)

// givesValues reports whether a line, or one of the lines that it joins, gives a name a value with a digit.
func givesValues(line string) bool {
	if !strings.ContainsAny(line, "0123456789") {
		return false
	}
	if record.MatchString(line) {
		return true
	}
	if placed.MatchString(line) {
		return false
	}
	parts := strings.Split(line, lineJoint)
	if slices.ContainsFunc(parts, value.MatchString) {
		return true
	}
	return slices.ContainsFunc(parts, func(part string) bool {
		form := formOf(part)
		isCell := form.kind == row && (len(parts) > 1 || strings.Contains(part, "|"))
		return isCell && strings.ContainsAny(part, "0123456789") || form.kind == pair && pairValue.MatchString(part)
	})
}
