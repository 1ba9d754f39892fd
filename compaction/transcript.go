package compaction

import (
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// clampChars is what stays of a tool's result, and of a call's arguments, in a clamped transcript. Letta: 5,000.
const clampChars = 5_000

// sparse is how much later a message is than the last whose time is shown, for its own to be shown.
const sparse = time.Hour

// entry is a message as a transcript shows it, with the line's end.
type entry struct {
	seq    int64
	text   string
	tokens int
}

// transcript is what a summariser reads of messages: a line each, who spoke, and what; lines that go on are indented, so that no message
// can pass itself off as another. What was thought is left out, and of images there is their number. Messages without a word have no
// entry.
func transcript(messages []recall.Message, clamp bool) []entry {
	var entries []entry
	names := callNames(messages)
	var shown time.Time
	for _, m := range messages {
		said := spoken(m, names, clamp)
		if said == "" || isWarning(m) {
			continue
		}
		at := ""
		if !m.CreatedAt.IsZero() && m.CreatedAt.Sub(shown).Abs() >= sparse {
			shown = m.CreatedAt
			at = shown.UTC().Format(" (2006-01-02 15:04 UTC)")
		}
		text := fmt.Sprintf("[%d] %s%s: %s\n", m.Seq, speaker(m), at, said)
		entries = append(entries, entry{seq: m.Seq, text: text, tokens: tokens.Estimate(text)})
	}
	return entries
}

func speaker(m recall.Message) string {
	if m.Name == nil || *m.Name == "" || m.Role == recall.Tool {
		return string(m.Role)
	}
	name := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || strings.ContainsRune("[]():<>", r) {
			return ' '
		}
		return r
	}, *m.Name)
	return string(m.Role) + " " + defused(beginningOf(strings.Join(strings.Fields(name), " "), 60))
}

// callNames are the names of the tools that were called, by the ids of the calls.
func callNames(messages []recall.Message) map[string]string {
	names := map[string]string{}
	for _, m := range messages {
		for _, p := range m.Content {
			if p.Type == recall.ToolCall {
				names[p.CallID] = p.Name
			}
		}
	}
	return names
}

// spoken is what a message says, its lines after the first indented.
func spoken(m recall.Message, names map[string]string, clamp bool) string {
	var parts []string
	images := 0
	for _, p := range m.Content {
		images += len(p.Images)
		switch p.Type {
		case recall.Image:
			images++
		case recall.Text:
			parts = append(parts, p.Text)
		case recall.ToolCall:
			parts = append(parts, fmt.Sprintf("-> %s(%s)", p.Name, clamped(p.Input, clamp)))
		case recall.ToolReturn:
			parts = append(parts, returned(p, names, clamp))
		default: // what was thought
		}
	}
	if images == 1 {
		parts = append(parts, "[image]")
	} else if images > 1 {
		parts = append(parts, fmt.Sprintf("[%d images]", images))
	}
	var said []string
	for _, part := range parts {
		if part = strings.TrimSpace(clean(part)); part != "" {
			said = append(said, part)
		}
	}
	lines := strings.Split(strings.Join(said, "\n"), "\n")
	for i, line := range lines {
		if line = strings.TrimRight(line, " \t"); i > 0 && line != "" {
			line = "  " + line
		}
		lines[i] = line
	}
	return defused(strings.Join(lines, "\n"))
}

func returned(p recall.Part, names map[string]string, clamp bool) string {
	head := "result"
	if name := names[p.CallID]; name != "" {
		head += " of " + name
	}
	if p.IsError {
		head += ", an error"
	}
	texts := append(append([]string{p.Text}, p.Stdout...), p.Stderr...)
	return head + ": " + clamped(strings.TrimSpace(strings.Join(texts, "\n")), clamp)
}

func clamped(text string, clamp bool) string {
	if !clamp || len(text) <= clampChars {
		return text
	}
	n := utf8.RuneCountInString(text)
	if n <= clampChars {
		return text
	}
	return fmt.Sprintf("%s… [%d more characters]", beginningOf(text, clampChars), n-clampChars)
}

// clean makes a text fit for a transcript and a summary: valid UTF-8, one sign for the end of a line, and no others that control.
func clean(text string) string {
	if strings.ContainsFunc(text, unclean) || !utf8.ValidString(text) {
		text = strings.NewReplacer("\r\n", "\n", "\r", "\n", "\v", "\n", "\f", "\n", "\u0085", "\n", "\u2028", "\n", "\u2029", "\n").
			Replace(strings.ToValidUTF8(text, "\uFFFD"))
		text = strings.Map(func(r rune) rune {
			if unclean(r) {
				return -1
			}
			return r
		}, text)
	}
	return text
}

func unclean(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || r == '\u2028' || r == '\u2029')
}

// fences are the tags around what a summariser is given, and what looks like them.
var fences = regexp.MustCompile(`(?i)<([\s/]*(?:start_|end_)?(?:transcript|previous_summary|earlier_summary)\b)`)

// defused is a text in which no tag ends what a summariser is given.
func defused(text string) string {
	if !strings.ContainsRune(text, '<') {
		return text
	}
	return fences.ReplaceAllString(text, "‹$1")
}

func tokensIn(entries []entry) (n int) {
	for _, e := range entries {
		n += e.tokens
	}
	return n
}

func joined(entries []entry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.text)
	}
	return b.String()
}

// The shares of a transcript's budget that are kept of its beginning and its end where its middle is cut, and what may be told of the middle.
const (
	headShare  = 0.3
	tailShare  = 0.3
	aboutShare = 0.2
)

// leastPart is the least of a message that is kept where not all of it fits, in tokens.
const leastPart = 40

// cutMiddle keeps the beginning and the end of a transcript, and says which messages are missing or not whole. Whole messages are kept
// where they fit, else a part of one. first and last are the entries between which text is missing, both included.
func cutMiddle(entries []entry, budget int) (head, tail string, first, last int) {
	room := int(headShare * float64(budget))
	for first < len(entries) && entries[first].tokens <= room {
		room -= entries[first].tokens
		head += entries[first].text
		first++
	}
	if first < len(entries) && room >= leastPart {
		head += endLine(prefixWithin(entries[first].text, room))
	}
	room = int(tailShare * float64(budget))
	for last = len(entries) - 1; last > first && entries[last].tokens <= room; last-- {
		room -= entries[last].tokens
		tail = entries[last].text + tail
	}
	if last >= first && last >= 0 && room >= leastPart {
		tail = beginLine(suffixWithin(entries[last].text, room)) + tail
	}
	return head, tail, first, last
}

func endLine(text string) string {
	if text == "" || strings.HasSuffix(text, "\n") {
		return text
	}
	return text + "…\n"
}

func beginLine(text string) string {
	if text == "" {
		return text
	}
	return "  …" + strings.TrimLeft(text, " ")
}
