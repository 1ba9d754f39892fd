package tool

import (
	"cmp"
	"context"
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
