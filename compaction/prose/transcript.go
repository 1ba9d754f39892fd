package prose

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// ClampChars bounds a tool's result and a call's arguments in a clamped transcript. Letta: 5,000.
const ClampChars = 5_000

// timeGap is the least time between two messages from which on a transcript shows their times.
const timeGap = time.Hour

// Entry is a message in a transcript, including its line end.
type Entry struct {
	Seq    int64
	Text   string
	Tokens int
}

// Transcript returns messages in the form that a summarizer reads. Each message begins a line with its speaker, and its
// other lines are indented, so that no message can pass for another. Reasoning is left out, and images are only
// counted. A message that says nothing has no entry.
func Transcript(messages []recall.Message, clamp bool) []Entry {
	var entries []Entry
	names := CallNames(messages)
	var shown time.Time
	for _, m := range messages {
		spoken := Spoken(m, names, clamp)
		if spoken == "" || IsWarning(m) {
			continue
		}
		when := ""
		if !m.CreatedAt.IsZero() && m.CreatedAt.Sub(shown).Abs() >= timeGap {
			shown = m.CreatedAt
			when = shown.UTC().Format(" (2006-01-02 15:04 UTC)")
		}
		text := fmt.Sprintf("[%d] %s%s: %s\n", m.Seq, speaker(m), when, spoken)
		entries = append(entries, Entry{Seq: m.Seq, Text: text, Tokens: tokens.Estimate(text)})
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
	return string(m.Role) + " " + frame.Neutralize(tokens.PrefixChars(strings.Join(strings.Fields(name), " "), 60))
}

// CallNames maps call id → name of the called tool.
func CallNames(messages []recall.Message) map[string]string {
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

// Spoken returns what a message says. Lines after the first are indented.
func Spoken(m recall.Message, names map[string]string, clamp bool) string {
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
		default: // reasoning
		}
	}
	if images == 1 {
		parts = append(parts, "[image]")
	} else if images > 1 {
		parts = append(parts, fmt.Sprintf("[%d images]", images))
	}
	var texts []string
	for _, part := range parts {
		if part = strings.TrimSpace(Clean(part)); part != "" {
			texts = append(texts, part)
		}
	}
	lines := strings.Split(strings.Join(texts, "\n"), "\n")
	for i, line := range lines {
		if line = strings.TrimRight(line, " \t"); i > 0 && line != "" {
			line = "  " + line
		}
		lines[i] = line
	}
	return frame.Neutralize(strings.Join(lines, "\n"))
}

func returned(p recall.Part, names map[string]string, clamp bool) string {
	head := "result"
	if name := names[p.CallID]; name != "" {
		head += " of " + name
	}
	if p.IsError {
		head += ", an error"
	}
	if p.Clip != nil { // Loci's note on the rest is meant for the agent
		shown := p.Text[:min(max(p.Clip.Shown, 0), len(p.Text))]
		p.Text = moreCharacters(shown, p.Clip.Chars-utf8.RuneCountInString(shown))
	}
	texts := append(append([]string{p.Text}, p.Stdout...), p.Stderr...)
	return head + ": " + clamped(strings.TrimSpace(strings.Join(texts, "\n")), clamp)
}

func clamped(text string, clamp bool) string {
	if !clamp || len(text) <= ClampChars {
		return text
	}
	n := utf8.RuneCountInString(text)
	if n <= ClampChars {
		return text
	}
	return moreCharacters(tokens.PrefixChars(text, ClampChars), n-ClampChars)
}

func moreCharacters(head string, more int) string {
	return fmt.Sprintf("%s… [%d more characters]", head, more)
}

// TokensIn adds up the tokens of entries.
func TokensIn(entries []Entry) (n int) {
	for _, e := range entries {
		n += e.Tokens
	}
	return n
}

// Joined joins the texts of entries by blank lines.
func Joined(entries []Entry) string {
	var b strings.Builder
	for _, e := range entries {
		b.WriteString(e.Text)
	}
	return b.String()
}

// Shares of the budget if a transcript's middle is cut: its beginning, its end, and an extract of the middle.
const (
	headShare  = 0.3
	tailShare  = 0.3
	AboutShare = 0.2
)

// leastPart is the fewest tokens of a message that are kept if it does not fit whole.
const leastPart = 40

// CutMiddle returns a transcript's beginning and end within a budget in tokens: whole entries, and on each side a part
// of one more entry if it has room. first and last are the indexes of the first and the last entry that are not whole.
func CutMiddle(entries []Entry, budget int) (head, tail string, first, last int) {
	room := int(headShare * float64(budget))
	for first < len(entries) && entries[first].Tokens <= room {
		room -= entries[first].Tokens
		head += entries[first].Text
		first++
	}
	if first < len(entries) && room >= leastPart {
		head += endLine(tokens.Prefix(entries[first].Text, room))
	}
	room = int(tailShare * float64(budget))
	for last = len(entries) - 1; last > first && entries[last].Tokens <= room; last-- {
		room -= entries[last].Tokens
		tail = entries[last].Text + tail
	}
	if last >= first && last >= 0 && room >= leastPart {
		tail = beginLine(tokens.Suffix(entries[last].Text, room)) + tail
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
