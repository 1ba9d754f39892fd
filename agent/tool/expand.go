package tool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// maxExpandBytes bounds the part of a text that one result shows, so that the part always fits into a result.
const maxExpandBytes = MaxChars - 2_000

// whereTexts adds to an ErrNotFound where to find the ids of texts.
func whereTexts(err error) error {
	if err != nil && strings.Contains(err.Error(), "ids look like") {
		return err
	}
	return whereFound(err, "the notice on a cut text, a summary and the results of a search show ids and seq numbers")
}

// pageBytes returns how many bytes of a text one result shows a caller: usually, and at most.
func pageBytes(c Caller) (usual, most int) {
	most = min(maxExpandBytes, c.maxChars())
	return min(recall.ExpandBytes, most), most
}

type expandArgs struct {
	ID      text    `json:"id"`
	Offset  number  `json:"offset"`
	Limit   *number `json:"limit"`
	Pattern text    `json:"pattern"`
}

func (m Memories) expand(ctx context.Context, c Caller, a expandArgs) (Result, error) {
	if strings.TrimSpace(string(a.ID)) == "" {
		return Result{}, db.Invalid("No id given. Give the id of a long text, such as clip-…, or of a message, or " +
			"a range such as 'seq 120-188'.")
	}
	limit, err := limited(a.Limit, recall.ExpandBytes, maxExpandBytes)
	if err != nil {
		return Result{}, err
	}
	_, most := pageBytes(c)
	limit = min(limit, most)
	q := recall.ExpandQuery{ID: strings.TrimSpace(string(a.ID)), Offset: int(a.Offset), Limit: limit,
		Pattern: string(a.Pattern), Reach: c.reach()}
	found, err := m.expansion(ctx, c, q)
	if err != nil {
		return Result{}, whereTexts(err)
	}
	return Result{Text: expandText(string(a.Pattern), limit, found, c.maxChars())}, nil
}

// expansion returns a part of a text of the caller, or of the log of one of its sub-agents. To read a sub-agent's log,
// q.ID is the id of the sub-agent, alone or followed by a space and the id of a text in that log.
func (m Memories) expansion(ctx context.Context, c Caller, q recall.ExpandQuery) (recall.Expansion, error) {
	id, text, _ := strings.Cut(q.ID, " ")
	if !strings.HasPrefix(id, "child-") || m.Child == nil {
		return m.Recall.Expand(ctx, c.Org, c.Agent.ID, q)
	}
	log, err := m.Child(ctx, c.Org, c.Agent.ID, id)
	if err != nil {
		return recall.Expansion{}, err
	}
	within := c.within()
	_, err = m.Recall.ConversationIn(ctx, c.Org, c.Agent.ID, recall.Reach{Conversation: log.Parent, Users: c.Users})
	if errors.Is(err, db.ErrNotFound) || within != "" && within != log.Parent {
		return recall.Expansion{}, db.NotFound("There is no sub-agent with the id %q in this conversation", db.Short(id))
	}
	if err != nil {
		return recall.Expansion{}, err
	}
	shown := q.ID
	q.ID = cmp.Or(text, fmt.Sprintf("seq %d-%d", log.From, log.To))
	q.Reach = recall.Reach{Conversation: log.Conversation, Users: db.AllUsers()} // the log is all of the sub-agent's
	found, err := m.Recall.Expand(ctx, c.Org, log.AgentID, q)
	found.ID = shown
	return found, err
}

// expandText shows a part of a text. If there is a pattern, it shows the lines that match the pattern.
func expandText(pattern string, limit int, e recall.Expansion, chars int) string {
	switch {
	case pattern == "":
		return stretchText(limit, e)
	case len(e.Lines) == 0:
		return fmt.Sprintf("No line of %s fits '%s' (bytes %d-%d were searched). Patterns are RE2 expressions; (?i) at "+
			"the beginning ignores case.", e.ID, echo(pattern), e.Offset, e.TotalBytes)
	}
	return most(chars, len(e.Lines), func(n int) string { return linesPage(pattern, limit, e, n) })
}

// stretchText shows a part of the original text. The part may end within a line.
func stretchText(limit int, e recall.Expansion) string {
	end := e.Offset + len(e.Text)
	if end == e.Offset {
		return fmt.Sprintf("%s ends at byte %d.", e.ID, e.TotalBytes)
	}
	last := "That is the end of the text."
	if e.NextOffset != nil {
		last = "To read on, call: " + expandCall(e.ID, *e.NextOffset, limit, "")
	}
	return recall.ExpandPage{ID: e.ID, Offset: e.Offset, Total: e.TotalBytes, Text: e.Text, InLine: e.InLine}.Format(last)
}

// linesPage shows the first n lines that match a pattern.
func linesPage(pattern string, limit int, e recall.Expansion, n int) string {
	lines, next := e.Lines[:n], e.NextOffset
	if n < len(e.Lines) {
		next = &e.Lines[n].Offset
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Lines of %s that fit '%s' (showing %d, from byte %d of %d)\n%s\n", e.ID, echo(pattern), n, e.Offset,
		e.TotalBytes, rule)
	for _, l := range lines {
		b.WriteString(lineText(l) + "\n")
	}
	b.WriteString("\nTo read from a line on, call: " + expandCall(e.ID, lines[0].Offset, recall.ExpandBytes, "") + "\n")
	if next == nil {
		return b.String() + "No more lines to show."
	}
	return b.String() + "To see more lines, call: " + expandCall(e.ID, *next, limit, pattern)
}

// lineText returns a line with its number and offset. If the line has more than maxLineChars characters, it shows only
// the part with the match.
func lineText(l recall.Line) string {
	if utf8.RuneCountInString(l.Text) <= maxLineChars {
		return fmt.Sprintf("%d (offset %d): %s", l.Number, l.Offset, line(l.Text))
	}
	from := min(max(l.Match-l.Offset-maxLineChars/4, 0), len(l.Text))
	for from > 0 && from < len(l.Text) && !utf8.RuneStart(l.Text[from]) {
		from--
	}
	shown := line(clip(l.Text[from:], maxLineChars))
	if from > 0 {
		shown = "… " + shown
	}
	return fmt.Sprintf("%d (offset %d, match at %d): %s … [cut: the line is long; expand it at an offset]", l.Number,
		l.Offset, l.Match, shown)
}

func expandCall(id string, offset, limit int, pattern string) string {
	return invocation("expand", argument{"id", id, nil}, argument{"offset", offset, 0},
		argument{"limit", limit, recall.ExpandBytes}, argument{"pattern", pattern, ""})
}
