package chunker

import (
	"encoding/csv"
	"strings"
	"unicode"
)

// How far a quoted cell may run over lines, and how much of the text is read to know its delimiter, in bytes.
const (
	maxRecord = 16 << 10
	maxSniff  = 64 << 10
)

// rows is the outline of a text of records. Where it is a table of delimited values, a record may run over lines inside quotes.
type rows struct {
	text      string
	delimited bool
	header    string
	until     int // where the record that was read last ends
}

// newRows returns the outline at the top of text, after looking for a delimiter and a header.
func newRows(text string) *rows {
	r := &rows{text: text}
	first := firstFields(text)
	if first == nil {
		return r
	}
	r.delimited = true
	if isHeader(first) {
		header := strings.TrimPrefix(text[:recordEnd(text, 0)], "\ufeff")
		r.header = clip(strings.TrimRight(header, "\r\n"), maxHeading)
	}
	return r
}

func (r *rows) read(l line) mark {
	found := mark{pos: l.start, content: strings.TrimSpace(l.head) != ""}
	if l.start < r.until || !found.content {
		return found
	}
	found.rank = record
	if r.delimited {
		r.until = recordEnd(r.text, l.start)
	}
	return found
}

func (r *rows) inside() bool    { return false }
func (r *rows) depth() int      { return 0 }
func (r *rows) heading() string { return r.header }
func (r *rows) clone() outline  { c := *r; return &c }

// recordEnd returns where the record that starts at pos ends: after the first line that leaves no quote open. Where there is none within
// maxRecord bytes the record is the one line, of which a long one's end is not looked for.
func recordEnd(text string, pos int) int {
	near := text[pos:min(pos+maxRecord, len(text))]
	firstEnd, quotes := len(near), 0
	for at := 0; at < len(near); {
		end := len(near)
		if i := strings.IndexByte(near[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		quotes += strings.Count(near[at:end], `"`)
		if quotes%2 == 0 {
			return pos + end
		}
		firstEnd, at = min(firstEnd, end), end
	}
	return pos + firstEnd
}

// firstFields returns the first record of a table of delimited values, or nil if the first two records do not have the same number of
// fields, two or more, by any delimiter.
func firstFields(text string) (fields []string) {
	text = strings.TrimPrefix(text[:min(maxSniff, len(text))], "\ufeff")
	if text = strings.TrimLeft(text, "\r\n"); text == "" || text[0] == '{' || text[0] == '[' {
		return nil
	}
	for _, delimiter := range ",\t;|" {
		r := csv.NewReader(strings.NewReader(text))
		r.Comma, r.LazyQuotes = delimiter, true
		first, err := r.Read()
		if err != nil || len(first) < 2 || len(first) <= len(fields) {
			continue
		}
		if _, err = r.Read(); err == nil {
			fields = first
		}
	}
	return fields
}

// isHeader tells whether a record names columns: short, different words, none of them a number, a date or a sentence.
func isHeader(fields []string) bool {
	seen := make(map[string]bool, len(fields))
	for _, field := range fields {
		field = strings.TrimSpace(field)
		if field == "" || len(field) > 64 || seen[field] || strings.ContainsAny(field, ":\n{}<>=") {
			return false
		}
		if first := []rune(field)[0]; !unicode.IsLetter(first) && first != '_' && first != '#' {
			return false
		}
		seen[field] = true
	}
	return true
}
