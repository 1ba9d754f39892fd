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

// contextPrompt shows the parts of an agent's window within a budget.
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
	if _, err := s.Recall.Conversation(ctx, c.Org, c.AgentID, id); err != nil {
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
		cutPart("Working memory", orEmpty(o.WorkingMemory), o.TokensWorkingMemory),
		memoryPart(c.AgentID, o.CoreMemory, o.TokensCoreMemory, memory.Blocks),
		cutPart("Summary of what was said before", orEmpty(o.SummaryMemory), o.TokensSummaryMemory),
		messagesPart(messages),
	})
	return cmp.Or(text, "The agent knows nothing yet."), nil
}

func orEmpty(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// contextPart is a part of the prompt context. show returns what of it fits a number of tokens.
type contextPart struct {
	title  string
	tokens int
	show   func(tokens int) string
}

// within returns the parts that are not empty under their titles, all of them within a budget of tokens.
func within(budget int, parts []contextPart) string {
	parts = slices.DeleteFunc(parts, func(p contextPart) bool { return p.tokens == 0 })
	var wanted []int
	for _, p := range parts {
		wanted = append(wanted, p.tokens)
	}
	var b strings.Builder
	for i, n := range portions(wanted, budget) {
		fmt.Fprintf(&b, "# %s\n\n%s\n\n", parts[i].title, strings.TrimSpace(parts[i].show(n)))
	}
	return strings.TrimSpace(b.String())
}

// portions divides a budget. Whoever wants less than an equal share gets it all; the others share the rest equally.
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

// cutPart is a text of which the beginning is shown where it does not fit.
func cutPart(title, text string, size int) contextPart {
	if strings.TrimSpace(text) == "" {
		size = 0
	}
	return contextPart{title, size, func(n int) string {
		return beginningOf(text, size, n, "a larger budget shows more")
	}}
}

// beginningOf returns a text of a number of tokens, or the beginning of it that has n, with a note that says what shows
// the rest.
func beginningOf(text string, size, n int, rest string) string {
	if n >= size {
		return text
	}
	shown := strings.ToValidUTF8(text[:len(text)*n/size], "")
	return fmt.Sprintf("%s\n… [cut: %d of %d tokens fit the budget; %s]", strings.TrimSpace(shown), n, size, rest)
}

// memoryPart is an agent's memory blocks as its prompt has them, or each under its label where they do not all fit.
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

// messagesPart is what users and the agent said: the newest messages that fit, and of the newest the beginning where it
// does not.
func messagesPart(list []recall.Message) contextPart {
	list = slices.DeleteFunc(slices.Clone(list), func(m recall.Message) bool {
		return m.Role != recall.User && m.Role != recall.Assistant || strings.TrimSpace(m.Text()) == ""
	})
	size := 0
	for _, m := range list {
		size += m.Tokens
	}
	return contextPart{"Newest messages", size, func(left int) string {
		first, most := len(list)-1, maxResourceBytes
		newest := list[first]
		if newest.Tokens > left {
			most = len(newest.Text()) * left / newest.Tokens
		}
		for left -= newest.Tokens; first > 0 && list[first-1].Tokens <= left; first-- {
			left -= list[first-1].Tokens
		}
		return said(list[first:], most)
	}}
}

// The bounds of the prompt context, in tokens.
const (
	defaultBudget = 4_000
	minBudget     = 100
	maxBudget     = 200_000
)
