package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/loci-memory/loci/memory/block"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

// contextPrompt shows the parts of an agent's window, within a budget of tokens.
func (s *Server) contextPrompt(ctx context.Context, c caller, args map[string]string) (string, error) {
	budget := defaultBudget
	if text := args["budget"]; text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < minBudget || n > maxBudget {
			return "", wrong("budget is %.40q; it must be a number of tokens from %d to %d", text, minBudget, maxBudget)
		}
		budget = n
	}
	id := cmp.Or(args["conversation_id"], recall.DefaultConversation)
	if !storable(id) {
		return "", wrong("there is no conversation %.80q", id)
	}
	if _, err := s.conversation(ctx, c.Caller, id); err != nil {
		return "", err
	}
	o, messages, err := s.Agents.Overview(ctx, c.Org, c.AgentID, id)
	if err != nil {
		return "", err
	}
	a, err := s.agentOf(ctx, c)
	if err != nil {
		return "", err
	}
	memory, err := s.Agents.CoreMemory(ctx, c.Org, a, false)
	if err != nil {
		return "", err
	}
	text := within(budget, []contextPart{
		memoryPart(c.AgentID, o.CoreMemory, o.TokensCoreMemory, memory.Blocks),
		cutPart("Summary of what was said before", orEmpty(o.SummaryMemory), o.TokensSummaryMemory),
		messagesPart(messages),
		cutPart("Working memory", orEmpty(o.WorkingMemory), o.TokensWorkingMemory), // last, because it changes most often
	})
	return cmp.Or(text, "The agent knows nothing yet."), nil
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// contextPart is a part of the prompt context. show returns as much of the part as fits a number of tokens.
type contextPart struct {
	title  string
	tokens int
	show   func(tokens int) string
}

// within returns the non-empty parts with their titles, shortened to fit a budget of tokens.
func within(budget int, parts []contextPart) string {
	parts = slices.DeleteFunc(parts, func(p contextPart) bool { return p.tokens == 0 })
	var sizes []int
	for _, p := range parts {
		sizes = append(sizes, p.tokens)
	}
	var b strings.Builder
	for i, n := range portions(sizes, budget) {
		fmt.Fprintf(&b, "# %s\n\n%s\n\n", parts[i].title, strings.TrimSpace(parts[i].show(n)))
	}
	return strings.TrimSpace(b.String())
}

// portions divides a budget. A part that wants less than an equal share gets all it wants; the others share the rest
// equally.
func portions(wanted []int, budget int) []int {
	order := make([]int, len(wanted))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return wanted[i] - wanted[k] })
	got := make([]int, len(wanted))
	for n, i := range order {
		got[i] = min(wanted[i], budget/(len(order)-n))
		budget -= got[i]
	}
	return got
}

// cutPart is a text that is cut at its end if it does not fit. size is the text's number of tokens.
func cutPart(title, text string, size int) contextPart {
	if strings.TrimSpace(text) == "" {
		size = 0
	}
	return contextPart{title, size, func(n int) string {
		return beginningOf(text, size, n, "a larger budget shows more")
	}}
}

// beginningOf returns a text of size tokens or, if n is smaller, its first n tokens with a note. rest is the end of the
// note: how to see the rest.
func beginningOf(text string, size, n int, rest string) string {
	if n >= size {
		return text
	}
	shown := strings.ToValidUTF8(text[:len(text)*n/size], "")
	return fmt.Sprintf("%s\n… [cut: %d of %d tokens fit the budget; %s]", strings.TrimSpace(shown), n, size, rest)
}

// memoryPart is an agent's memory blocks: as they stand in its prompt or, if they do not all fit, each block under its
// label.
func memoryPart(agentID, shown string, size int, all []block.Block) contextPart {
	if strings.TrimSpace(shown) == "" {
		size = 0
	}
	return contextPart{"Memory", size, func(n int) string {
		if n >= size {
			return shown
		}
		var sizes []int
		for _, b := range all {
			sizes = append(sizes, tokens.Estimate(b.Value))
		}
		var b strings.Builder
		for i, n := range portions(sizes, n) {
			uri := uriOf(agentID, place{kind: blocks, path: []string{all[i].Label}})
			fmt.Fprintf(&b, "## %s\n\n%s\n\n", all[i].Label, strings.TrimSpace(
				beginningOf(all[i].Value, sizes[i], n, "the resource "+uri+" has it all")))
		}
		return b.String()
	}}
}

// messagesPart holds what users and the agent said: the newest messages that fit. If not even the newest fits, it holds
// the beginning of that one.
func messagesPart(list []recall.Message) contextPart {
	list = slices.DeleteFunc(slices.Clone(list), func(m recall.Message) bool {
		return m.Role != recall.User && m.Role != recall.Assistant || strings.TrimSpace(m.Text()) == ""
	})
	size := 0
	for _, m := range list {
		size += m.Tokens
	}
	return contextPart{"Newest messages", size, func(budget int) string {
		first, maxBytes := len(list)-1, maxResourceBytes
		newest := list[first]
		if newest.Tokens > budget {
			maxBytes = len(newest.Text()) * budget / newest.Tokens
		}
		for budget -= newest.Tokens; first > 0 && list[first-1].Tokens <= budget; first-- {
			budget -= list[first-1].Tokens
		}
		return said(list[first:], maxBytes)
	}}
}

// The bounds of the prompt context, in tokens.
const (
	defaultBudget = 4_000
	minBudget     = 100
	maxBudget     = 200_000
)
