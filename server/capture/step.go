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

// Step holds the fields of a step of an agent loop, besides its messages.
type Step struct {
	OTID   string // the caller's own id of the step; may be empty
	Answer bool   // the first message is the model's answer
	Ending string // how the answer ended, as package chat names it; empty if it is complete
	Format string // format of the next prompt; empty: the one of the agent's model

	Approvals []Approval // approvals of calls that need one

	Purpose string // recall.ForFlush if the step answers a silent turn; else empty
	Accepts bool   // the caller accepts a silent turn in place of the next prompt

	Policy json.RawMessage // policy for the next prompt, in place of the policy in force; nil changes nothing
	Recall json.RawMessage // settings of recall for the next prompt, in place of the agent's; nil changes nothing

	AnswerPending bool // in the next prompt, calls without a result get one that says they wait
}

// Approval approves or denies a call.
type Approval struct {
	CallID  string
	Approve bool
	Reason  string // why the call is denied
}

// ReadStep reads a step except its messages: the model's answer, and the messages that follow it. Either may be
// missing.
func ReadStep(body *rest.Spool, zone *time.Location) (*Batch, error) {
	b, request, err := open(body, zone, rest.Lists{Names: []string{"messages", "input"},
		Others: []string{"conversation_id", "otid", "response", "usage", "format", "pending", "approvals", "purpose",
			"accept", "policy", "recall", "refused"}})
	if err != nil {
		return nil, err
	}
	b.Step = &Step{OTID: request.Text("otid"), Answer: request.Has("response"), Policy: request.JSON("policy"),
		Recall: request.JSON("recall")}
	if request.Has("format") {
		b.Step.Format = request.OneOf("format", "openai", "anthropic", "responses")
	}
	if request.Has("pending") {
		b.Step.AnswerPending = request.OneOf("pending", "keep", "answer") == "answer"
	}
	if request.Has("accept") {
		b.Step.Accepts = request.OneOf("accept", recall.ForFlush) == recall.ForFlush
	}
	if b.Refused = readRefused(request); b.Refused != nil {
		b.Refused.OTID = cmp.Or(b.Refused.OTID, b.Step.OTID)
		for _, name := range []string{"response", "approvals"} {
			if request.Has(name) {
				request.Refuse("refused", "cannot stand beside "+name+": the provider answered the prompt or refused it")
			}
		}
	}
	if request.Has("purpose") {
		b.Step.Purpose = request.OneOf("purpose", recall.ForFlush)
		refuseWithFlush(request)
	}
	if b.Step.Answer {
		b.Step.Ending = request.Ending("response")
	}
	if request.Has("usage") {
		b.countOf(body, "", b.fields)
	} else {
		b.countAnswer(body, "response")
	}
	name := "messages"
	if request.Has("input") && !request.Has(name) {
		name = "input"
	}
	if request.Has("approvals") {
		b.Step.Approvals = readApprovals(request)
	}
	b.Stores = b.Step.Answer || request.Has(name) || len(b.Step.Approvals) == 0 && b.Refused == nil
	if b.read = readStep(name); b.Stores && !b.Step.Answer {
		b.checkList(request, name)
	}
	return b, unprocessable(request.Err())
}

// refuseWithFlush refuses fields that cannot stand beside the answer to a silent turn.
func refuseWithFlush(request chat.Object) {
	if !request.Has("response") && !request.Has("refused") {
		request.Refuse("response",
			"a step with the purpose flush needs what the model answered to the silent turn; to leave the "+
				"turn out, ask for the next prompt without accept")
	}
	for _, name := range []string{"messages", "input", "approvals"} {
		if request.Has(name) {
			request.Refuse(name, "the answer to a silent turn stands alone: send this with the next step")
		}
	}
}

// readApprovals reads the approvals of a step.
func readApprovals(request chat.Object) (all []Approval) {
	for _, item := range request.Items("approvals", "a list of approvals") {
		a := Approval{CallID: item.Needed("tool_call_id"), Approve: item.Flag("approve"), Reason: item.Text("reason")}
		if !item.Has("approve") {
			item.Refuse("approve", "expected true or false")
		}
		all = append(all, a)
	}
	return all
}

// readModelAnswer reads the model's answer, and gives its calls unique ids. If the step has an otid, the ids depend
// only on it, so that a repeated step gets the same ids.
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

// readStep reads the answer, and then the messages in a field.
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

// PromptPosition returns the position of the last message of the prompt that was counted: the message before the
// assistant's answer or, without an answer, the last message.
func (b *Batch) PromptPosition(appended []recall.Appended) int {
	if b.answer >= 0 {
		return appended[b.answer].Position - 1
	}
	return appended[len(appended)-1].Position
}

// Reported reports whether an earlier request stored the answer with the counted prompt. That request used the count.
func (b *Batch) Reported(appended []recall.Appended) bool {
	return b.answer >= 0 && appended[b.answer].Repeated
}

// Recorded returns what providers counted for the prompts that the messages of a recording answered, in order, without
// those of messages that an earlier request stored.
func (b *Batch) Recorded(appended []recall.Appended) (all []recall.RecordedPrompt) {
	for i, m := range appended {
		if c, ok := b.counts[i]; ok && !m.Repeated {
			all = append(all, recall.RecordedPrompt{Answer: m.Position, Tokens: c.tokens, Model: c.model})
		}
	}
	return all
}
