package tool

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
	memorysearch "github.com/loci-memory/loci/memory/search"
	"github.com/loci-memory/loci/recall"
)

type searchMemoryArgs struct {
	Query text       `json:"query"`
	Kinds list[text] `json:"kinds"`
	Limit *number    `json:"limit"`
	AsOf  text       `json:"as_of"`

	Filter condition `json:"filter"`
}

// search returns the search in all memories.
func (m Memories) search() memorysearch.Memories {
	return memorysearch.Memories{Files: m.Files, Recall: m.Recall, Blocks: m.Blocks, Archival: m.Archival,
		Working: m.Working, MemoryFiles: m.MemoryFiles}
}

// SearchMemory searches all memories of an agent.
func (s *Set) SearchMemory(ctx context.Context, q memorysearch.Query) (memorysearch.Results, error) {
	return s.memories.search().Search(ctx, q)
}

func (m Memories) searchMemory(ctx context.Context, c Caller, a searchMemoryArgs) (Result, error) {
	if err := must("search_memory", "query", a.Query); err != nil {
		return Result{}, err
	}
	limit, err := limited(a.Limit, memorysearch.DefaultLimit, memorysearch.MaxLimit)
	if err != nil {
		return Result{}, err
	}
	q := memorysearch.Query{Org: c.Org, Agent: c.Agent, Text: string(a.Query), Limit: limit, Unseen: !c.Unprompted,
		Confined: c.Confined, Users: c.Users, Filter: a.Filter.json(), Conversation: cmp.Or(c.Conversation,
			recall.DefaultConversation)}
	now := clockOf(c.Agent)
	if q.Held.AsOf, err = recall.ParseStart(string(a.AsOf), now.zone); err != nil {
		return Result{}, db.Invalid(invalidTime, "as_of", echo(string(a.AsOf)))
	}
	for _, kind := range a.Kinds {
		q.Kinds = append(q.Kinds, kindOf(string(kind)))
	}
	found, err := m.search().Search(ctx, q)
	if err != nil {
		return Result{}, err
	}
	return Result{Text: foundText(q, found, now, c.maxChars())}, nil
}

// kindOf returns the kind of memory that a word means: its name, a plural or another spelling of it, or the word
// itself.
func kindOf(word string) memorysearch.Kind {
	meant := singular(bare(word))
	for _, k := range memorysearch.Kinds {
		if singular(bare(string(k))) == meant {
			return k
		}
	}
	others := map[string]memorysearch.Kind{"archival": memorysearch.Passage, "archivalmemory": memorysearch.Passage,
		"conversation": memorysearch.Message, "core": memorysearch.Block, "corememory": memorysearch.Block}
	return cmp.Or(others[meant], memorysearch.Kind(strings.ToLower(word)))
}

// foundText shows the hits in all memories, the best first, in so many characters.
func foundText(q memorysearch.Query, r memorysearch.Results, now clock, chars int) string {
	note := remarks(r.SearchedFor, r.Note, r.WhyEnded(), !r.Meaning && r.Known == "")
	if r.Known != "" {
		note = fmt.Sprintf("\n\nNote: Ranked by words: %s has what the query names.", echo(r.Known))
	}
	if r.Wordless {
		return r.WhyNothing() + remarks("", r.Note, r.WhyEnded(), false)
	}
	if len(r.Hits) == 0 {
		return fmt.Sprintf("No memory has anything for query: '%s'%s. Ask in other words.%s", echo(q.Text), ofKinds(q), note)
	}
	return mostHits(chars, len(r.Hits), func(show shownHits) string {
		var b strings.Builder
		fmt.Fprintf(&b, "Found %s for query: '%s'%s, the best first\n%s\n", count(len(r.Hits), "place"), echo(q.Text),
			ofKinds(q), rule)
		for _, h := range r.Hits[:show.n] {
			b.WriteString(foundHit(h, q, now, show.chars))
		}
		b.WriteString(show.cutNote("limit"))
		if omitted := len(r.Hits) - show.n; omitted > 0 {
			fmt.Fprintf(&b, "\nNote: the %d lowest-ranked places did not fit here. Ask for fewer, or for one kind.\n", omitted)
		}
		return strings.TrimSuffix(b.String(), "\n") + note
	})
}

func ofKinds(q memorysearch.Query) string {
	if len(q.Kinds) == 0 {
		return ""
	}
	var names []string
	for _, k := range q.Kinds {
		names = append(names, string(k))
	}
	return " in " + strings.Join(names, " and ")
}

// foundHit shows a hit under a head, with so many characters of its text and the call that reads on. Without characters
// it is a line.
func foundHit(h memorysearch.MemoryFound, q memorysearch.Query, now clock, chars int) string {
	head := fmt.Sprintf("=== %s%s", strings.ReplaceAll(string(h.Kind), "_", " "), placeOf(h.Place))
	if h.At != nil && h.Kind != memorysearch.File {
		head += ", " + now.format(*h.At)
	}
	head += held(h.Validity, h.Ended, h.SupersededBy, now)
	if h.Context {
		head += ", context of others"
	}
	if head += " ===\n"; chars == 0 {
		return head
	}
	text := "\n" + head + indented(excerpt(h.Text, q.Text, chars))
	switch {
	case h.Call != nil:
		text += "  To read on, call: " + callText(*h.Call) + "\n"
	case h.Layer == memorysearch.Active && q.Unseen: // the caller sees active memory in its prompt
		text += "  You see it in your prompt.\n"
	}
	return text
}

// placeOf returns the place of a hit as its head shows it.
func placeOf(p memorysearch.FoundPlace) string {
	var b strings.Builder
	for _, part := range []string{p.Label, fileName(p.Path), p.Field, p.Role} {
		if part != "" {
			b.WriteString(" " + echo(part))
		}
	}
	if p.ID != "" && p.Path == "" && p.Label == "" {
		b.WriteString(" " + echo(p.ID))
	}
	if p.FirstLine > 0 && p.Path != "" {
		fmt.Fprintf(&b, " (lines %d-%d)", p.FirstLine, p.LastLine)
	}
	if p.Seq > 0 {
		fmt.Fprintf(&b, ", seq %d", p.Seq)
	}
	if p.Conversation != "" {
		b.WriteString(" of " + echo(p.Conversation))
	}
	return b.String()
}

// callText returns a call that a model can repeat unchanged.
func callText(c memorysearch.ReadOn) string {
	var args []argument
	for _, name := range slices.Sorted(maps.Keys(c.Arguments)) {
		args = append(args, argument{name, c.Arguments[name], nil})
	}
	return invocation(c.Tool, args...)
}
