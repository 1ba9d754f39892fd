package chunker

import (
	"encoding/csv"
	"strings"
	"unicode"
)

const (
	maxRecord = 16 << 10 // maximum bytes of a record with line ends in quotes
	maxSniff  = 64 << 10 // how many bytes are read to find the delimiter
)

// rows is the outline of records. In delimited values, a quoted cell may contain line ends.
type rows struct {
	flat
	text      string
	delimited bool
	header    string
	until     int // end of the last record
}

// newRows returns the outline at the start of a text, with the text's delimiter and header.
func newRows(text string) *rows {
	r := &rows{text: text}
	first := firstFields(text)
	if first == nil {
		return r
	}
	r.delimited = true
	if isHeader(first) {
		header := strings.TrimPrefix(text[:recordEnd(text, 0)], "\ufeff")
		r.header = shorten(strings.TrimRight(header, "\r\n"), maxHeading)
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

func (r *rows) heading() string { return r.header }
func (r *rows) clone() outline  { copied := *r; return &copied }

// recordEnd returns the end of the record that starts at pos: the end of the first line after which no quote is open.
// If there is none within maxRecord bytes, the record is one line, or its first maxRecord bytes.
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

// firstFields returns the first record of delimited values. It returns nil unless some delimiter splits the first two
// records into the same number of fields, at least two.
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

// isHeader reports whether a record names columns. Its fields must be short and distinct, and none may be a number or a
// date.
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
