package capture

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/rest"
)

// Step is what a step of an agent's loop asks for besides its messages.
type Step struct {
	OTID   string // the caller's own id of the step; empty if it has none
	Answer bool   // the first of the messages is what the model answered
	Ending string // how the answer ended, as chat names it; empty if it is whole
	Format string // of the next prompt; empty is that of the agent's model

	Approvals []Approval // of calls that need one

	Purpose string // recall.ForFlush if it answers a silent turn; else empty
	Accepts bool   // silent turns, in place of the next prompt

	Policy json.RawMessage // of the next prompt, over the one in force; nil keeps that

	AnswerPending bool // gives calls that wait for their results one that says so, in the next prompt
}

// Approval approves or denies a call.
type Approval struct {
	CallID  string
	Approve bool
	Reason  string // why it is denied
}

// ReadStep reads a step without its messages: what a model answered, and the messages that follow the answer. Either
// may be missing.
func ReadStep(body *rest.Spool, zone *time.Location) (*Batch, error) {
	b, in, err := open(body, zone, rest.Lists{Names: []string{"messages", "input"},
		Others: []string{"conversation_id", "otid", "response", "usage", "format", "pending", "approvals", "purpose",
			"accept", "policy", "refused"}})
	if err != nil {
		return nil, err
	}
	b.Step = &Step{OTID: in.Text("otid"), Answer: in.Has("response"), Policy: in.JSON("policy")}
	if in.Has("format") {
		b.Step.Format = in.OneOf("format", "openai", "anthropic", "responses")
	}
	if in.Has("pending") {
		b.Step.AnswerPending = in.OneOf("pending", "keep", "answer") == "answer"
	}
	if in.Has("accept") {
		b.Step.Accepts = in.OneOf("accept", recall.ForFlush) == recall.ForFlush
	}
	if b.Refused = readRefused(in); b.Refused != nil {
		b.Refused.OTID = cmp.Or(b.Refused.OTID, b.Step.OTID)
		for _, name := range []string{"response", "approvals"} {
			if in.Has(name) {
				in.Refuse("refused", "cannot stand beside "+name+": the provider answered the prompt or refused it")
			}
		}
	}
	if in.Has("purpose") {
		b.Step.Purpose = in.OneOf("purpose", recall.ForFlush)
		refuseWithFlush(in)
	}
	if b.Step.Answer {
		b.Step.Ending = in.Ending("response")
	}
	if in.Has("usage") {
		b.countOf(body, "", b.fields)
	} else {
		b.countAnswer(body, "response")
	}
	name := "messages"
	if in.Has("input") && !in.Has(name) {
		name = "input"
	}
	if in.Has("approvals") {
		b.Step.Approvals = readApprovals(in)
	}
	b.Stores = b.Step.Answer || in.Has(name) || len(b.Step.Approvals) == 0 && b.Refused == nil
	if b.read = readStep(name); b.Stores && !b.Step.Answer {
		b.checkList(in, name)
	}
	return b, unprocessable(in.Err())
}

// refuseWithFlush refuses what the answer to a silent turn cannot have.
func refuseWithFlush(in chat.Object) {
	if !in.Has("response") && !in.Has("refused") {
		in.Refuse("response", "a step with the purpose flush needs what the model answered to the silent turn; to leave the "+
			"turn out, ask for the next prompt without accept")
	}
	for _, name := range []string{"messages", "input", "approvals"} {
		if in.Has(name) {
			in.Refuse(name, "the answer to a silent turn stands alone: send this with the next step")
		}
	}
}

// readApprovals reads the approvals of a step.
func readApprovals(in chat.Object) (all []Approval) {
	for _, item := range in.Items("approvals", "a list of approvals") {
		a := Approval{CallID: item.Needed("tool_call_id"), Approve: item.Flag("approve"), Reason: item.Text("reason")}
		if !item.Has("approve") {
			item.Refuse("approve", "expected true or false")
		}
		all = append(all, a)
	}
	return all
}

// readModelAnswer reads what the model answered, and gives its calls ids that are unique in it: the same ones, if a
// step with an otid comes again.
func (b *Batch) readModelAnswer(body chat.Object) (message, error) {
	m, err := readAnswer(body, "response", func(n int) string {
		if b.Step.OTID == "" {
			return "call_" + uuid.NewString()
		}
		return "call_" + uuid.NewSHA1(uuid.NameSpaceOID, fmt.Appendf(nil, "%d %s", n, b.Step.OTID)).String()
	})
	if err != nil {
		return m, err
	}
	if chat.IsEmpty(m.Content) {
		body.Refuse("response", "the model answered with neither a text nor a call: ask it again")
		return m, body.Err()
	}
	m.OTID = given(b.Step.OTID)
	return m, nil
}

// readStep reads the answer, and the messages in a field.
func readStep(name string) func(*Batch, chat.Object) iter.Seq2[message, error] {
	return func(b *Batch, body chat.Object) iter.Seq2[message, error] {
		return func(yield func(message, error) bool) {
			if b.Step.Answer {
				if m, err := b.readModelAnswer(body); !yield(m, err) || err != nil {
					return
				}
			}
			if !body.Has(name) {
				return
			}
			n := 0
			for m, err := range readMessages(name)(b, body) {
				if n++; m.OTID == nil && b.Step.OTID != "" {
					m.OTID = given(numbered(b.Step.OTID, n))
				}
				if !yield(m, err) || err != nil {
					return
				}
			}
		}
	}
}

func given(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// PromptPosition returns the position of the last message of the prompt that was counted: the message before the last
// one of the assistant or, without one, the last of all.
func (b *Batch) PromptPosition(appended []recall.Appended) int {
	if b.answer >= 0 {
		return appended[b.answer].Position - 1
	}
	return appended[len(appended)-1].Position
}

// Reported reports whether an earlier request stored the answer whose prompt was counted: its count was used then.
func (b *Batch) Reported(appended []recall.Appended) bool {
	return b.answer >= 0 && appended[b.answer].Repeated
}
