package compaction

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/recall"
)

// Shown returns messages as a model sees them: of a clipped result, the beginning, the end, and how to read the rest.
// It does not change the messages given.
func Shown(messages []recall.Message, clips []Clip) []recall.Message {
	byPosition := clipsByPosition(clips)
	if len(byPosition) == 0 {
		return messages
	}
	shown := slices.Clone(messages)
	for i, m := range shown {
		for n, c := range byPosition[m.Position] {
			if n == 0 {
				shown[i].Content = slices.Clone(m.Content)
			}
			if isClipOf(c, m) {
				shown[i].Content[c.Part].Text = clipped(m, c)
			}
		}
	}
	return shown
}

// clipsByPosition returns clips by the positions of their messages.
func clipsByPosition(clips []Clip) map[int][]Clip {
	if len(clips) == 0 {
		return nil
	}
	all := make(map[int][]Clip, len(clips))
	for _, c := range clips {
		all[c.Position] = append(all[c.Position], c)
	}
	return all
}

// isClipOf reports whether a clip is of a result of the message.
func isClipOf(c Clip, m recall.Message) bool {
	return m.Position == c.Position && c.Part >= 0 && c.Part < len(m.Content) &&
		m.Content[c.Part].Type == recall.ToolReturn && c.Chars >= 0
}

// clipped returns the text of a clipped result: at most c.Chars characters of the original, in whole lines if at least
// half of the characters are left then, and one marker, because it is always made from the log's text.
func clipped(m recall.Message, c Clip) string {
	p := m.Content[c.Part]
	if p.Clip != nil {
		return clippedPreview(p, c.Chars)
	}
	total := utf8.RuneCountInString(p.Text)
	if total <= c.Chars {
		return p.Text
	}
	head := headOf(p.Text, c.Chars-c.Chars/2)
	tail := tailOf(p.Text, c.Chars/2)
	offset := len(head)
	for i := range c.Part { // expand reads the message as one text, with each part on lines of its own
		n := len(m.Content[i].Text)
		if other := m.Content[i]; other.Type != recall.ToolReturn || len(other.Stdout)+len(other.Stderr) > 0 {
			n = len(recall.Message{Content: m.Content[i : i+1]}.Text())
		}
		if n > 0 {
			offset += n + 1
		}
	}
	return fmt.Sprintf("%s\n[%d of %d characters are left out here. To read them, call: expand(id=%q, offset=%d)]\n%s",
		head, total-utf8.RuneCountInString(head)-utf8.RuneCountInString(tail), total, m.ID, offset, tail)
}

// clippedPreview returns the text of a clipped result of which the log holds only the beginning.
func clippedPreview(p recall.Part, chars int) string {
	whole := p.Text[:min(max(p.Clip.Shown, 0), len(p.Text))]
	if utf8.RuneCountInString(whole) <= chars {
		return p.Text
	}
	head := headOf(whole, chars)
	return fmt.Sprintf("%s\n[The first %d of %d bytes are shown. To read on, call: expand(id=%q, offset=%d)]",
		head, len(head), p.Clip.Bytes, p.Clip.ID, len(head))
}

// shownChars returns how many characters of the original an unclipped result shows.
func shownChars(p recall.Part) int {
	if p.Clip != nil {
		return utf8.RuneCountInString(p.Text[:min(max(p.Clip.Shown, 0), len(p.Text))])
	}
	return utf8.RuneCountInString(p.Text)
}

// headOf returns at most some characters of the beginning of a text.
func headOf(text string, chars int) string {
	end := 0
	for ; chars > 0 && end < len(text); chars-- {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	head := text[:end]
	if i := strings.LastIndexByte(head, '\n'); i >= len(head)/2 && i > 0 {
		return head[:i+1]
	}
	return head[:escape(head)]
}

// tailOf returns at most some characters of the end of a text.
func tailOf(text string, chars int) string {
	start := len(text)
	for ; chars > 0 && start > 0; chars-- {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		start -= size
	}
	tail := text[start:]
	if i := strings.IndexByte(tail, '\n'); i >= 0 && i < len(tail)/2 {
		return tail[i+1:]
	}
	for at := start; at <= len(text) && at < start+maxEscape; at++ { // skip the rest of a terminal's escape sequence
		if escape(text[:at]) == at && (at == len(text) || utf8.RuneStart(text[at])) {
			return text[at:]
		}
	}
	return tail
}

// maxEscape is the length of the longest escape sequence of a terminal, in bytes, that is kept whole.
const maxEscape = 32

// escape returns where the escape sequence begins that the end of a text cuts, or the length of the text.
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
