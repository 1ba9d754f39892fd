package tool

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/compaction/policy"
	"github.com/loci-memory/loci/db"
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
	return inForce.ReadBounds(), err
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
	lines = policy.CutNumbered(lines, bounds.MaxLineChars)
	f.Content = head + lines
	shown := bounds.Lines(lines)
	if shown == "" { // a part of the first line is better than nothing
		shown, _, _ = strings.Cut(lines, "\n")
		shown = db.Beginning(shown, bounds.MaxBytes)
	}
	return shorter(f, utf8.RuneCountInString(head+shown), true)
}

// admission returns a function that refuses views above the bounds. Its error names the calls that find the place, and
// that read a part.
func admission(b *policy.ReadBounds, has recall.Toolset) func(files.Wanted) error {
	return func(w files.Wanted) error {
		head, lines := "", w.Text
		if first, rest, ok := strings.Cut(w.Text, "\n"); ok && strings.HasPrefix(first, "[") {
			head, lines = first+"\n", rest
		}
		shown := policy.CutNumbered(lines, b.MaxLineChars)
		if parts := strings.SplitAfterN(shown, "\n", b.MaxLines+1); len(parts) > b.MaxLines {
			shown = strings.Join(parts[:b.MaxLines], "")
		}
		if !w.Cut && len(lines) <= b.MaxBytes && !b.Exceeds(head+shown) {
			return nil
		}
		text := fmt.Sprintf("%s was not opened: these lines have more than %s, which one read may have; the file has %s.",
			fileName(w.Name), gate(b), count(w.Lines, "line"))
		text += has.Hint("grep_files", " To find the place, call: "+invocation("grep_files", argument{"pattern", "…", nil},
			argument{"include", w.Name, nil}))
		if fitting := b.Lines(shown); fitting != "" {
			part := nextRequest{FileName: w.Name, Line: w.First, Length: new(strings.Count(fitting, "\n") + 1)}
			text += " To read a part, call: " + openCall(part, false)
		}
		return db.Invalid("%s", text)
	}
}
