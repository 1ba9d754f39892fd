package recall

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// pageRule is the line above and below the text of a page.
var pageRule = strings.Repeat("=", 80)

// ExpandPage is a part of a text, as the tool expand shows it.
type ExpandPage struct {
	ID     string // the text's id
	Offset int    // where the part begins, in bytes
	Total  int    // size of the whole text, in bytes
	Text   string // the part
	InLine bool   // the part begins within a line of a range of messages
}

// Format returns the page. Its last line says what follows the page.
func (p ExpandPage) Format(last string) string {
	begin, end := "", ""
	if p.InLine { // without this, a part of a line could pass for the head of a message
		begin = "… "
	}
	if !strings.HasSuffix(p.Text, "\n") {
		end = "\n"
	}
	return fmt.Sprintf("%s, bytes %d-%d of %d\n%s\n%s%s%s%s\n%s", p.ID, p.Offset, p.Offset+len(p.Text), p.Total, pageRule,
		begin, p.Text, end, pageRule, last)
}

var pageHeader = regexp.MustCompile(`^(.+), bytes (\d{1,18})-(\d{1,18}) of (\d{1,18})\n` + pageRule + `\n`)

// ParseExpandPage reads a page that Format wrote. ok is false for any other text.
func ParseExpandPage(text string) (p ExpandPage, ok bool) {
	beginning := text[:min(len(text), 1_000)]
	if !strings.Contains(beginning, "\n"+pageRule+"\n") { // cheap check first: most texts are no pages
		return p, false
	}
	m := pageHeader.FindStringSubmatch(beginning)
	if m == nil {
		return p, false
	}
	end := 0
	p.ID = m[1]
	p.Offset, _ = strconv.Atoi(m[2]) // digits, and few enough
	end, _ = strconv.Atoi(m[3])
	p.Total, _ = strconv.Atoi(m[4])
	for _, begin := range []string{"", "… "} {
		body, begins := strings.CutPrefix(text[len(m[0]):], begin)
		n := end - p.Offset
		if !begins || n < 0 || n > len(body) {
			continue
		}
		if strings.HasPrefix(strings.TrimPrefix(body[n:], "\n"), pageRule+"\n") {
			p.Text, p.InLine = body[:n], begin != ""
			return p, true
		}
	}
	return p, false
}
