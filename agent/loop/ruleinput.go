package loop

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/chunker/frame"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// ruleInput is the input of the tool rules: the calls with results since the user's newest message, and the reminders
// of tools that must be called.
type ruleInput struct {
	calls     []call
	reminders []string
}

// readRuleInput reads the turn that the message at a position belongs to.
func (r rules) readRuleInput(ctx context.Context, log *recall.Store, org db.Org, c recall.Conversation, position int) (
	ruleInput, error) {
	var messages []recall.Message
	page, f := db.Page{Limit: tailPage}, recall.MessageFilter{AgentID: c.AgentID, Conversation: c.ID, WithErrors: true,
		NotRefused: true}
	for {
		list, err := log.Messages(ctx, org, f, page)
		if err != nil {
			return ruleInput{}, err
		}
		begin := slices.IndexFunc(list, func(m recall.Message) bool {
			return m.Role == recall.User && m.Position < position
		})
		if begin >= 0 {
			messages = append(messages, list[:begin]...)
		} else {
			messages = append(messages, list...)
		}
		if begin >= 0 || len(list) < page.Limit || len(messages) >= maxRunMessages {
			slices.Reverse(messages)
			return ruleInput{r.answeredCalls(messages), remindersBefore(messages, position)}, nil
		}
		page.After = list[len(list)-1].ID
	}
}

// answeredCalls returns the calls of messages that have their results among these messages.
func (r rules) answeredCalls(messages []recall.Message) (calls []call) {
	open := recall.OpenCalls[call]{}
	for _, m := range messages {
		for i, p := range m.Content {
			switch p.Type {
			case recall.ToolCall:
				open.Add(p.CallID, call{done: done{tool: p.Name}, id: p.CallID, position: m.Position, part: i})
			case recall.ToolReturn:
				if c, ok := open.Answer(p.CallID); ok {
					c.done, c.refused = r.doneBy(c.tool, p), isRefused(p)
					calls = append(calls, c)
				}
			}
		}
	}
	return calls
}

// before returns the turn's calls before a position, in order. Refused calls are left out: the rules do not count them.
func (t ruleInput) before(position int) (all []done) {
	calls := slices.Clone(t.calls)
	slices.SortStableFunc(calls, func(a, b call) int {
		return cmp.Or(cmp.Compare(a.position, b.position), cmp.Compare(a.part, b.part))
	})
	for _, c := range calls {
		if c.position < position && !c.refused {
			all = append(all, c.done)
		}
	}
	return all
}

// maxReminders bounds how often a turn has the same reminder.
const maxReminders = 3

// reminder returns the message that tells the model which tools it must call, and how often the turn already has it.
func (t ruleInput) reminder(missing []string) (d recall.Draft, times int) {
	text := frame.System + " Before your response ends, you must call " + strings.Join(missing, ", ") + "."
	for _, r := range t.reminders {
		if r == text {
			times++
		}
	}
	return recall.Draft{Role: recall.System, Content: []recall.Part{{Type: recall.Text, Text: text}}}, times
}

// forced returns the tool that the model's next answer must call, because the model ended its turn in spite of a
// reminder; empty if there is none, or if the rules do not allow the tool now.
func (t ruleInput) forced(missing []string, n narrowing) string {
	if _, times := t.reminder(missing); times == 0 {
		return ""
	}
	if i := slices.IndexFunc(missing, n.allows); i >= 0 {
		return missing[i]
	}
	return ""
}

// notCalled says that a model did not call tools that it must call before its turn ends.
func notCalled(missing []string) string {
	return fmt.Sprintf("By the rules of its tools the model must call %s before its turn ends. It did not, although it "+
		"was told so %d times and its requests asked for the call", strings.Join(missing, ", "), maxReminders)
}

func remindersBefore(messages []recall.Message, position int) (all []string) {
	for _, m := range messages {
		if m.Role == recall.System && m.Position < position && len(m.Content) == 1 {
			all = append(all, m.Content[0].Text)
		}
	}
	return all
}

// maxRunMessages bounds the messages of a run that are read at once.
const maxRunMessages = 10_000
