package handover

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// Bounds on the material of a hand-over.
const (
	maxMessages  = 2_000 // only the newest ones are read
	maxLineChars = 1_500 // of one message
	maxChars     = 60_000
)

// material is what was said in a session. It is stored until its hand-over is made.
type material struct {
	Lines    []line `json:"lines"`
	Position int    `json:"position"` // of the last message
	Next     string `json:"next"`     // the next step in working memory at the time of the hand-over
	Cut      int    `json:"cut"`      // number of messages left out before the first line
	Opening  *line  `json:"opening"`  // the conversation's first line of a user; nil if it was handed over before
}

// line is the text of a message.
type line struct {
	Seq  int64       `json:"seq"`
	Role recall.Role `json:"role"`
	Text string      `json:"text"`
}

// snapshot returns what was said in a conversation after a position. It has no lines if neither a user nor a model said
// anything.
func (s *Store) snapshot(ctx context.Context, org db.Org, c recall.Conversation, after int) (m material, err error) {
	from := max(after+1, c.Messages-maxMessages+1)
	m.Cut = from - after - 1
	spoken := false
	for messages, err := range s.Agents.Recall.Pages(ctx, org, c, from, c.Messages) {
		if err != nil {
			return m, err
		}
		spoken = m.add(messages) || spoken
	}
	if !spoken {
		return material{}, nil
	}
	if after == 0 && m.Cut == 0 {
		if i := slices.IndexFunc(m.Lines, func(l line) bool { return l.Role == recall.User }); i >= 0 {
			m.Opening = new(m.Lines[i])
		}
	}
	m.shorten()
	state, err := s.Agents.Working.Memory(ctx, org, c)
	if state.Next != nil {
		m.Next = state.Next.Text
	}
	return m, err
}

// add adds messages as lines. It reports whether a user or a model said one of them.
func (m *material) add(messages []recall.Message) (spoken bool) {
	for _, one := range messages {
		if one.Purpose != "" || one.Role == recall.System || one.Role == recall.Summary || one.IsErr || one.Refused != nil {
			continue
		}
		text := strings.TrimSpace(one.Text())
		if text == "" {
			continue
		}
		spoken = spoken || one.Role == recall.User || one.Role == recall.Assistant
		if short := []rune(text); len(short) > maxLineChars {
			text = string(short[:maxLineChars]) + "…"
		}
		m.Lines, m.Position = append(m.Lines, line{one.Seq, one.Role, text}), one.Position
	}
	return spoken
}

// shorten removes the oldest lines until the rest has at most maxChars characters.
func (m *material) shorten() {
	total := 0
	for i, l := range slices.Backward(m.Lines) {
		if total += len([]rune(l.Text)); total > maxChars {
			m.Cut += i + 1
			m.Lines = slices.Clone(m.Lines[i+1:])
			return
		}
	}
}

// String returns the material in the form that a model reads: each message with its position under a head. No text of a
// message can look like a head.
func (m material) String() string {
	var b strings.Builder
	if m.Opening != nil && !slices.ContainsFunc(m.Lines, m.Opening.same) {
		m.Opening.write(&b)
	}
	if m.Cut > 0 {
		fmt.Fprintf(&b, frame.EarlierLeftOut+"\n", m.Cut)
	}
	for _, l := range m.Lines {
		l.write(&b)
	}
	return b.String()
}

// write writes a line under a head with its position.
func (l line) write(b *strings.Builder) {
	text := strings.ReplaceAll(frame.Neutralize(l.Text), "\n", "\n    ")
	fmt.Fprintf(b, frame.Position+" %s: %s\n", l.Seq, l.Role, text)
}

func (l line) same(o line) bool { return l.Seq == o.Seq }

// has reports whether the material contains the message at a position of the agent's log.
func (m material) has(seq int64) bool {
	return m.Opening != nil && m.Opening.Seq == seq ||
		slices.ContainsFunc(m.Lines, func(l line) bool { return l.Seq == seq })
}
