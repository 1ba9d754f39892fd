package tool

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
)

// readBounds returns the bounds that the current policy sets on reads of files; nil if it sets none.
func (m Memories) readBounds(ctx context.Context, c Caller) (*policy.ReadBounds, error) {
	if m.Agents == nil {
		return nil, nil //nolint:nilnil // nil bounds nothing
	}
	conversation, err := m.Recall.Conversation(ctx, c.Org, c.Agent.ID,
		cmp.Or(c.Conversation, recall.DefaultConversation))
	if err != nil {
		return nil, err
	}
	inForce, err := m.Agents.PolicyInForce(ctx, c.Org, c.Agent, conversation)
	return inForce.ReadBounds().CountedBy(func(text string) int { return m.Agents.CountTokens(c.Agent, text) }), err
}

// bounded cuts the content of a file to the number of lines that one call may show, and each line to the permitted
// length.
func bounded(f files.Opened, bounds *policy.ReadBounds) files.Opened {
	if bounds == nil {
		return f
	}
	head, lines := "", f.Content
	if first, rest, ok := strings.Cut(f.Content, "\n"); ok && strings.HasPrefix(first, "[") {
		head, lines = first+"\n", rest
	}
	short := policy.CutNumbered(lines, bounds.MaxLineChars)
	f.LineCut = f.LineCut || short != lines && f.FirstLine == f.LastLine
	lines = short
	f.Content = head + lines
	shown := bounds.Lines(lines)
	if shown == "" { // a part of the first line is better than nothing
		line, _, _ := strings.Cut(lines, "\n")
		return headed(partOfLine(f, head+bounds.Part(line)))
	}
	return shorter(f, utf8.RuneCountInString(head+shown), true)
}

// shorter cuts the content of a file to whole lines that have at most chars characters. If no line fits and the result
// has no other file, it cuts the first line, because no later call could show that line whole.
func shorter(f files.Opened, chars int, alone bool) files.Opened {
	whole := wholeLines(f.Content, max(chars, 0))
	if whole == f.Content {
		return f
	}
	last, ok := lastNumber(whole)
	switch {
	case ok:
		f.Content, f.LastLine, f.NextOffset = whole, last, &last
		f.LineCut = f.LineCut && last == f.FirstLine
	case alone:
		f = partOfLine(f, clip(f.Content, max(chars-len(frame.Truncated), 0)))
	default:
		return unseen(f)
	}
	return headed(f)
}

// partOfLine returns f with a part of its first line, content, and no other line.
func partOfLine(f files.Opened, content string) files.Opened {
	f.Content = content + frame.Truncated
	if f.LastLine > f.FirstLine {
		f.NextOffset = new(f.FirstLine)
	}
	f.LastLine, f.LineCut = f.FirstLine, true
	return f
}

// headed returns f with a header that names the lines that it shows.
func headed(f files.Opened) files.Opened {
	if header, rest, _ := strings.Cut(f.Content, "\n"); strings.HasPrefix(header, "[") {
		f.Content = fmt.Sprintf(frame.ViewLinesShort+"\n%s", f.FirstLine, f.LastLine, rest)
	}
	return f
}

// unseen returns f without lines.
func unseen(f files.Opened) files.Opened {
	f.Content, f.LastLine, f.NextOffset, f.LineCut = "", f.FirstLine-1, new(f.FirstLine-1), false
	return f
}

// page returns the bounds on what one call shows, such as "2,000 lines or 50 KB".
func page(b *policy.ReadBounds) string {
	s := fmt.Sprintf("%s lines or %s", thousands(b.MaxLines), kilobytes(b.MaxBytes))
	if b.MaxTokens > 0 {
		s += fmt.Sprintf(" or %s tokens", thousands(b.MaxTokens))
	}
	return s
}

// gate returns the bounds above which a read is refused, such as "256 KB or 25,000 tokens".
func gate(b *policy.ReadBounds) string {
	s := kilobytes(b.MaxBytes)
	if b.MaxTokens > 0 {
		s += fmt.Sprintf(" or %s tokens", thousands(b.MaxTokens))
	}
	return s
}

func kilobytes(n int) string {
	if n%1024 == 0 {
		return thousands(n>>10) + " KB"
	}
	return thousands(n) + " bytes"
}

// thousands returns a number with commas, such as 15,000.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
