// Package clip holds what a model sees of a conversation, a [View], and edits that show parts of it in other ways than
// they are stored: clipped, as a line, as a pointer. It never changes what is stored.
//
// Each file uses those that are named before it: edit.go view.go clip.go shown.go summarymessage.go cutpoints.go
// sent.go estimate.go
package clip

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/tokenmath"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/recall/tokens"
)

// textOffset returns the byte at which a part begins in the text of its message, as expand reads that text: each part
// starts on a new line.
func textOffset(m recall.Message, part int) (offset int) {
	for i, p := range m.Content[:part] {
		n := len(p.Text)
		if p.Type != recall.ToolReturn && p.Type != recall.Text || len(p.Stdout)+len(p.Stderr) > 0 {
			n = len(recall.Message{Content: m.Content[i : i+1]}.Text())
		}
		if n > 0 {
			offset += n + 1
		}
	}
	return offset
}

// marker says where to read the text that a clip leaves out: the message's reference, and an offset in its text.
type marker struct {
	of     string
	offset int
	limit  int            // bytes of a result of expand that the view likely shows whole
	has    recall.Toolset // the model's tools
	tail   float64        // share of the shown characters that come from the text's end
	said   string         // the marker's first words
}

// reference returns the message's seq (shorter than its id), or the result's id while no message holds it.
func reference(m recall.Message) string {
	if m.Seq == 0 && m.ID != "" {
		return m.ID
	}
	return strconv.FormatInt(m.Seq, 10)
}

// leastPage is the fewest bytes that a marker asks the model to read at a time.
const leastPage = 100

// readLimit returns how many bytes expand may return so that a clip to chars characters still shows all of them.
func readLimit(chars int) int { return max(chars, leastPage) }

// expandedPage returns the page that a result of expand shows. ok is false for any other part.
func expandedPage(view []recall.Message, p recall.Part) (page recall.ExpandPage, ok bool) {
	if p.Type != recall.ToolReturn || p.Clip != nil {
		return page, false
	}
	if page, ok = recall.ParseExpandPage(p.Text); !ok {
		return page, false
	}
	isCall := func(call recall.Part) bool {
		return call.Type == recall.ToolCall && call.CallID == p.CallID && call.Name == "expand"
	}
	return page, slices.ContainsFunc(view, func(m recall.Message) bool { return slices.ContainsFunc(m.Content, isCall) })
}

// clippedPage returns a shorter page of an expanded result: the page that expand returns with a smaller limit, so that
// the model can read on in the original text. A result that takes no more tokens is returned unchanged. note is the
// byte range of the line with the notice.
func clippedPage(result string, page recall.ExpandPage, chars int, has recall.Toolset) (short string, note [2]int) {
	if utf8.RuneCountInString(result) <= chars {
		return result, note
	}
	total := len(page.Text)
	page.Text = headOf(page.Text, chars)
	call := recall.ExpandCall(strconv.Quote(page.ID), page.Offset+len(page.Text), readLimit(chars))
	last := frame.CutHere + has.Hint("expand", " To read on, call: "+call)
	short = page.Format(last)
	switch {
	case page.Text == "" && total <= leastPage: // the same call would show no more
		last = frame.NoRoom
		short = last
	case page.Text == "":
		last = cutWith(has.Hint("expand", call))
		short = last
	}
	if tokens.Estimate(result) <= tokens.Estimate(short) {
		return result, note
	}
	return short, [2]int{len(short) - len(last), len(short)}
}

// cutWith returns the notice in place of a whole text, with the call that reads the text if there is one.
func cutWith(call string) string {
	if call == "" {
		return frame.Cut
	}
	return fmt.Sprintf(frame.CutCalled, call)
}

// clipped cuts a text to chars characters and one marker. It keeps whole lines if they have at least half of these
// characters. It starts from the log's text, so there is never a second marker. It returns the text unchanged if the
// cut would save no tokens. With chars 0 only the shortest marker remains. note is the byte range of the marker.
func clipped(text string, chars int, mark marker) (short string, note [2]int) {
	total := tokens.Chars(text)
	if total <= chars {
		return text, note
	}
	end := min(int(mark.tail*float64(chars)+tokenmath.Rounding), chars)
	head, tail := headOf(text, chars-end), tailOf(text, end)
	if chars == 0 {
		offset := ""
		if mark.offset > 0 {
			offset = fmt.Sprintf(", offset=%d", mark.offset)
		}
		short = cutWith(mark.has.Hint("expand", fmt.Sprintf("expand(id=%s%s)", mark.of, offset)))
		return short, [2]int{0, len(short)}
	}
	rest := mark.has.Hint("expand", ": call "+
		recall.ExpandCall(strconv.Quote(mark.of), mark.offset+len(head), mark.limit))
	head, tail = head+"\n", "\n"+tail
	said := ""
	if mark.said != "" {
		said = frame.Neutralize(mark.said) + "; "
	}
	marked := fmt.Sprintf(frame.CharsLeftOut, said,
		total-tokens.Chars(head)-tokens.Chars(tail)+2, total, rest)
	short = head + marked + tail
	omitted := text[len(head)-1 : len(text)-len(tail)+1]
	if len(text) < 4*len(short) && !worthCutting(omitted, marked) && tokens.Estimate(text) <= tokens.Estimate(short) {
		return text, note
	}
	return short, [2]int{len(head), len(head + marked)}
}

// worthCutting reports whether a clip certainly saves tokens: the first bytes of the hidden text take more tokens than
// the marker.
func worthCutting(left, marker string) bool {
	const part, slack = 1000, 16 // bytes; tokens by which the counts of pieces may differ from the whole
	if len(left)/tokens.MaxBytesPerToken > tokens.MaxPerByte*len(marker)+slack {
		return true
	}
	return tokens.Estimate(db.Beginning(left, part)) > tokens.Estimate(marker)+slack
}

// These are characters of clipped arguments: the shortest clip of a string, and the room of the other fields beyond the
// clip's limit.
const (
	leastLiteral = 32
	otherFields  = 160
)

// clippedInput returns a call's arguments, clipped: a JSON object with the same fields, where the long strings together
// have c.Chars characters. If that is not possible, it returns an object with the beginning and the end of the
// arguments. An edit of kind Head clips each long string to c.Chars.
func clippedInput(m recall.Message, c Edit, has recall.Toolset) string {
	p := m.Content[c.Part]
	if utf8.RuneCountInString(p.Input) <= c.Chars {
		return p.Input
	}
	mark := marker{of: reference(m), offset: textOffset(m, c.Part) + len(p.Name) + len("("), limit: readLimit(c.Chars),
		has: has, tail: c.tailShare()}
	each := c.Kind == Head
	isJSON, literals := json.Valid([]byte(p.Input)), StringLiterals(p.Input)
	for chars := c.Chars; isJSON && (each || chars >= leastLiteral); chars /= 2 {
		var b strings.Builder
		end, shown := 0, 0
		for _, l := range literals {
			text, whole := "", p.Input[l[0]:l[1]]
			if utf8.RuneCountInString(whole) <= chars || json.Unmarshal([]byte(whole), &text) != nil {
				continue
			}
			literal := mark
			literal.offset += l[0] + 1
			short, _ := clipped(text, chars, literal)
			if short == text {
				continue
			}
			b.WriteString(p.Input[end:l[0]])
			b.Write(chat.Encode(short))
			shown += utf8.RuneCountInString(p.Input[end:l[0]]) + chars
			end = l[1]
		}
		b.WriteString(p.Input[end:])
		if each || shown+utf8.RuneCountInString(p.Input[end:]) <= c.Chars+otherFields {
			return b.String()
		}
	}
	if c.Chars == 0 {
		return fmt.Sprintf(`{"cut":%q}`, has.Hint("expand", fmt.Sprintf("expand(id=%s)", reference(m))))
	}
	short, _ := clipped(p.Input, c.Chars, mark)
	return string(chat.Encode(map[string]string{"clipped": short}))
}

// StringLiterals returns the bounds of the string literals in a JSON text, including their quotes.
func StringLiterals(text string) (bounds [][2]int) {
	for offset := 0; ; {
		begin := strings.IndexByte(text[offset:], '"')
		if begin < 0 {
			return bounds
		}
		end := offset + begin + 1
		for end < len(text) && text[end] != '"' {
			step := strings.IndexAny(text[end:], `"\\`)
			switch {
			case step < 0:
				return bounds
			case text[end+step] == '\\':
				step += 2
			}
			end += step
		}
		if end >= len(text) {
			return bounds
		}
		bounds = append(bounds, [2]int{offset + begin, end + 1})
		offset = end + 1
	}
}

// clippedPreview cuts a long result to at most chars characters of its preview. The log stores only a preview of such a
// result. note is the byte range of the notice in text.
func clippedPreview(p recall.Part, chars int, has recall.Toolset) (text string, note [2]int) {
	whole := p.Text[:min(max(p.Clip.Shown, 0), len(p.Text))]
	if utf8.RuneCountInString(whole) <= chars {
		return p.Text, [2]int{len(whole), len(p.Text)}
	}
	head := len(headOf(whole, chars))
	text = p.Preview(head, readLimit(chars), has)
	return text, [2]int{head, len(text)}
}

// headOf returns the beginning of a text, at most chars characters.
func headOf(text string, chars int) string {
	end := tokens.ASCIIPrefix(text[:min(max(chars, 0), len(text))])
	for chars -= end; chars > 0 && end < len(text); chars-- {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	head := text[:end]
	if i := strings.LastIndexByte(head, '\n'); i >= len(head)/2 && i > 0 {
		return head[:i+1]
	}
	return head[:escape(head)]
}

// tailOf returns the end of a text, at most chars characters.
func tailOf(text string, chars int) string {
	start := len(text) - tokens.ASCIISuffix(text[len(text)-min(max(chars, 0), len(text)):])
	for chars -= len(text) - start; chars > 0 && start > 0; chars-- {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	tail := text[start:]
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < len(tail)/2 {
		return tail[i+1:]
	}
	for from := start; from <= len(text) && from < start+maxEscape; from++ { // skip the rest of a terminal escape sequence
		if escape(text[:from]) == from && (from == len(text) || utf8.RuneStart(text[from])) {
			return text[from:]
		}
	}
	return tail
}

// maxEscape is the length in bytes of the longest terminal escape sequence that is kept whole.
const maxEscape = 32

// escape returns the start of the escape sequence that the end of a text cuts in two, or the text's length if it cuts
// none.
func escape(text string) int {
	from := max(len(text)-maxEscape, 0)
	i := strings.LastIndexByte(text[from:], 0x1b)
	if i < 0 {
		return len(text)
	}
	sequence := text[from+i+1:]
	if sequence == "" {
		return from + i
	}
	isFinal := func(r rune) bool { return r >= 0x40 && r <= 0x7e }
	if sequence[0] != '[' || strings.ContainsFunc(sequence[1:], isFinal) {
		return len(text)
	}
	return from + i
}
