// Package capture reads messages that other programs recorded, in the formats of OpenAI's APIs, of Anthropic's and of
// Letta, into drafts of the log.
//
// Its files, in order: capture.go reads the messages of a request, in all formats but that of Letta's lists; letta.go
// reads these, and Letta's approvals and results; step.go reads what a step of an agent's loop asks for besides its
// messages.
package capture

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/rest"
)

// Batch reads the messages of a request one by one.
type Batch struct {
	Conversation string // its id, or recall.DefaultConversation
	PromptTokens int    // a provider's count of the prompt; 0 if the request has none
	Step         *Step  // of a step
	Refused      *Refused
	Stores       bool // it has messages

	// IsSystemPrompt reports whether a message of the system is the prompt that the server itself puts before the
	// conversation, which is refused; nil for none.
	IsSystemPrompt func(text string) bool

	fields map[string]json.RawMessage
	lists  map[string]*rest.List
	zone   *time.Location
	read   func(*Batch, chat.Object) iter.Seq2[message, error]
	places []string // of the messages that were read
	answer int      // index of the answer whose prompt was counted, -1 without one
}

// Refused says that a provider refused the newest prompt of the conversation.
type Refused struct {
	Status  int
	Message string
	OTID    string // the caller's own id of the report; empty if it has none

	Elsewhere bool // not for what a message says
}

// readRefused reads what a provider refused; nil if it refused nothing.
func readRefused(in chat.Object) *Refused {
	if !in.Has("refused") {
		return nil
	}
	of := in.Object("refused")
	r := &Refused{Message: of.Text("message"), OTID: of.Text("otid")}
	if json.Unmarshal(of.JSON("status"), &r.Status) != nil || r.Status < 400 && r.Status != 200 || r.Status > 599 {
		of.Refuse("status", "expected the HTTP status that the provider answered with, from 400 to 599")
	}
	if of.Has("place") {
		r.Elsewhere = of.OneOf("place", "messages", "elsewhere") == "elsewhere"
	}
	if len(r.OTID) > maxOTIDBytes {
		of.Refuse("otid", fmt.Sprintf("expected at most %d bytes", maxOTIDBytes))
	}
	return r
}

const maxOTIDBytes = 512

// maxMessageBytes bounds a message as it is written: a text of recall.MaxPartBytes, of which a half is escaped. While
// it is stored it takes some five times as much memory.
const maxMessageBytes = recall.MaxPartBytes / 2 * 3

// message is a message that was read, and its place in the request.
type message struct {
	recall.Draft
	at string
	id string // of a listed item: items with the same id are one message
}

// maxItems is how many items of a list a message may have on average: Letta lists its parts as items of their own.
const maxItems = 4

// Read reads a request without its messages; times without an offset are in the zone.
func Read(body *rest.Spool, zone *time.Location) (*Batch, error) {
	b, in, err := open(body, zone, rest.Lists{Names: []string{"messages", "input", "request_messages"},
		Others: []string{"conversation_id", "provider", "model", "usage", "response_dict", "refused"}})
	if err != nil {
		return nil, err
	}
	if b.PromptTokens = in.PromptTokens("usage"); !in.Has("usage") {
		b.countAnswer(body, "response_dict")
	}
	b.read, b.Refused, b.Stores = readMessages("messages"), readRefused(in), true
	switch {
	case b.Refused != nil && in.Has("response_dict"):
		in.Refuse("refused", "cannot stand beside response_dict: the provider answered or refused")
	case b.Refused != nil && !in.Has("messages") && !in.Has("input") && !in.Has("request_messages"):
		b.Stores = false
	case in.Has("messages") && in.Has("request_messages"):
		in.Refuse("request_messages", "cannot stand beside messages")
	case in.Has("request_messages") || in.Has("response_dict"):
		b.read = (*Batch).readExchange
		if isGoogles(in.Needed("provider")) {
			in.Refuse("provider", "Google's format is not understood; send the turns as messages in the format of OpenAI, "+
				"Anthropic or Letta")
		}
		b.checkList(in, "request_messages")
	case in.Has("input") && !in.Has("messages"):
		b.read = readMessages("input")
		b.checkList(in, "input")
	default:
		b.checkList(in, "messages")
	}
	return b, unprocessable(in.Err())
}

// open reads the fields of a request.
func open(body *rest.Spool, zone *time.Location, l rest.Lists) (*Batch, chat.Object, error) {
	l.MaxItems, l.Rule = recall.MaxMessages*maxItems, "expected an object with messages"
	l.MaxItemBytes, l.MaxTextBytes = maxMessageBytes, recall.MaxPartBytes
	l.Remedy = fmt.Sprintf("Send at most %d messages at a time.", recall.MaxMessages)
	fields, lists, err := body.Fields(l)
	if err != nil {
		return nil, chat.Object{}, err
	}
	if lists["input"] == nil && fields["input"] != nil {
		fields["input"] = Input(fields["input"])
	}
	in := chat.NewObject(fields, zone)
	b := &Batch{Conversation: cmp.Or(in.Text("conversation_id"), recall.DefaultConversation), fields: fields, lists: lists,
		zone: zone}
	return b, in, nil
}

// OfMessages returns the batch of messages that are in memory.
func OfMessages(messages json.RawMessage, zone *time.Location) *Batch {
	return &Batch{Conversation: recall.DefaultConversation, zone: zone, read: readMessages("messages"),
		fields: map[string]json.RawMessage{"messages": messages}}
}

// Input returns the messages of an input: a text of the user or its parts, or messages.
func Input(input json.RawMessage) json.RawMessage {
	var parts []struct {
		Type string `json:"type"`
		Role string `json:"role"`
	}
	ofParts := json.Unmarshal(input, &parts) == nil && len(parts) > 0 && parts[0].Role == "" &&
		chat.PlainParts[parts[0].Type] != nil
	if !ofParts && !bytes.HasPrefix(input, []byte(`"`)) {
		return input
	}
	return chat.Encode(map[string]any{"role": "user", "content": input})
}

// countAnswer reads the provider's count of the prompt in an answer. It warns of one that cannot be, and ignores it,
// since the answer counts more.
func (b *Batch) countAnswer(body *rest.Spool, answer string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(b.fields[answer], &fields) == nil {
		b.countOf(body, answer, fields)
	}
}

// countOf is countAnswer for the fields of the object at a place.
func (b *Batch) countOf(body *rest.Spool, at string, fields map[string]json.RawMessage) {
	of := chat.NewObject(fields, b.zone)
	of.At = at
	b.PromptTokens = of.PromptTokens("usage")
	if err := of.Err(); err != nil {
		b.PromptTokens = 0
		body.Warn(err.Error() + ". The usage is ignored")
	}
}

// checkList refuses a field that is neither a list with items nor a message.
func (b *Batch) checkList(in chat.Object, name string) {
	if list := b.lists[name]; list != nil && list.Len > 0 || list == nil && len(in.Items(name, oneOrMore)) > 0 {
		return
	}
	in.Refuse(name, "expected at least one message")
}

const oneOrMore = "a message, or a list of them"

// Drafts yields the messages in their order, for the log to append. The first error is the last thing that it yields,
// and names the first place that is wrong. It may be ranged over several times.
func (b *Batch) Drafts() iter.Seq2[recall.Draft, error] {
	return func(yield func(recall.Draft, error) bool) {
		b.places, b.answer = nil, -1
		for m, err := range approved(joined(b.read(b, chat.NewObject(b.fields, b.zone)))) {
			if m.Role == recall.Assistant && (b.Step == nil || b.answer < 0) {
				b.answer = len(b.places)
			}
			b.places = append(b.places, m.at)
			if err == nil && b.isSystemPrompt(m.Draft) {
				err = &chat.FieldError{At: m.at, Rule: "this is the agent's system prompt, which stands at the beginning of " +
					"each prompt: leave it out, and send what followed it"}
			}
			if !yield(m.Draft, unprocessable(err)) || err != nil {
				return
			}
		}
	}
}

// isSystemPrompt reports whether a message is the prompt that the server puts before the conversation.
func (b *Batch) isSystemPrompt(d recall.Draft) bool {
	return d.Role == recall.System && b.IsSystemPrompt != nil && len(d.Content) == 1 &&
		b.IsSystemPrompt(d.Content[0].Text)
}

// Locate names the place in the request that an error of the log is about.
func (b *Batch) Locate(err error) error {
	wrong, ok := errors.AsType[*recall.DraftError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, db.ErrConflict):
		return db.Conflict("%s: %v", b.places[wrong.At], wrong.Err)
	case errors.Is(err, db.ErrInvalid):
		return rest.Unprocessable(b.places[wrong.At], wrong.Err.Error())
	}
	return err
}

// form is a format of messages. read notes in the item what it does not understand.
type form struct {
	matches func(chat.Object) bool
	read    func(chat.Object) []recall.Draft
}

// forms are tried in this order.
var forms = []form{
	{isListed, one(readListed)},
	{isApproval, one(refuseApproval)},
	{isToolReturns, one(readToolReturns)},
	{chat.IsItem, one(chat.ReadItem)},
	{func(chat.Object) bool { return true }, chat.Read},
}

func one(read func(chat.Object) recall.Draft) func(chat.Object) []recall.Draft {
	return func(m chat.Object) []recall.Draft { return []recall.Draft{read(m)} }
}

// isGoogles reports whether a provider's API has Google's format. Nearly all have OpenAI's.
func isGoogles(provider string) bool {
	name := strings.ToLower(provider)
	return slices.ContainsFunc([]string{"google", "gemini", "vertex"}, func(part string) bool {
		return strings.Contains(name, part) && !strings.Contains(name, "anthropic")
	})
}

// readMessages reads the list of messages in a field, or a single one, up to the first in which something is refused.
func readMessages(name string) func(*Batch, chat.Object) iter.Seq2[message, error] {
	return func(b *Batch, body chat.Object) iter.Seq2[message, error] {
		return func(yield func(message, error) bool) {
			n := 0
			for raw, err := range b.items(name) {
				if err != nil {
					yield(message{}, err)
					return
				}
				item := body.Item(name, n, raw)
				n++
				var read []message
				if !body.Failed() {
					read = readMessage(item)
				}
				if body.Failed() {
					yield(message{}, body.Err())
					return
				}
				for _, m := range read {
					if !yield(m, nil) {
						return
					}
				}
			}
		}
	}
}

// items yields the items of a list in a field, or the field itself.
func (b *Batch) items(name string) iter.Seq2[json.RawMessage, error] {
	if list := b.lists[name]; list != nil {
		return list.Items()
	}
	items := []json.RawMessage{b.fields[name]}
	if bytes.HasPrefix(items[0], []byte("[")) {
		items = nil
		_ = json.Unmarshal(b.fields[name], &items) // it was parsed before
	}
	return func(yield func(json.RawMessage, error) bool) {
		for _, raw := range items {
			if !yield(raw, nil) {
				return
			}
		}
	}
}

// readMessage reads a message, which may be two of the log: the results of tools in it, and what else it has.
func readMessage(m chat.Object) (all []message) {
	i := slices.IndexFunc(forms, func(f form) bool { return f.matches(m) })
	for n, d := range forms[i].read(m) {
		t := message{Draft: d, at: m.At}
		t.Name, t.OTID, t.Model = m.Optional("name"), m.Optional("otid"), m.Optional("model")
		t.StepID, t.RunID = m.Optional("step_id"), m.Optional("run_id")
		t.SenderID, t.GroupID = m.Optional("sender_id"), m.Optional("group_id")
		if t.CreatedAt = m.Time("created_at"); t.CreatedAt == nil {
			t.CreatedAt = m.Time("date")
		}
		t.IsErr = m.Flag("is_err")
		if n > 0 && t.OTID != nil {
			t.OTID = new(numbered(*t.OTID, n))
		}
		switch {
		case isListed(m):
			t.id = m.Text("id")
		case chat.IsAnswerItem(m):
			t.id = answerItem
		}
		all = append(all, t)
	}
	return all
}

// answerItem is the id of the items of an answer of OpenAI's Responses API.
const answerItem = "answer"

// numbered returns the otid of a message that comes of a request of an otid, or of a message of one.
func numbered(otid string, n int) string { return fmt.Sprintf("%s:%d", otid, n) }

// joined joins the items of a list that are parts of one message.
func joined(items iter.Seq2[message, error]) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		var last *message
		for m, err := range items {
			switch {
			case err != nil:
				yield(m, err)
				return
			case last != nil && last.joins(m):
				last.Content = append(last.Content, m.Content...)
				last.IsErr = last.IsErr || m.IsErr
				last.OTID = cmp.Or(last.OTID, m.OTID)
				continue
			case last != nil && !yield(*last, nil):
				return
			}
			last = &m
		}
		if last != nil {
			yield(*last, nil)
		}
	}
}

// joins reports whether the next item of a list belongs to the message. It lets a message exceed recall.MaxParts by one
// item, so that the log refuses it.
func (m *message) joins(next message) bool {
	return next.id != "" && m.id == next.id && m.Role == next.Role && len(m.Content) <= recall.MaxParts
}

// unprocessable returns the problem of a request whose field was not understood.
func unprocessable(err error) error {
	if field, ok := errors.AsType[*chat.FieldError](err); ok {
		return rest.Unprocessable(field.At, field.Rule)
	}
	return err
}

// readExchange reads the messages of a request to a provider, and the answer.
func (b *Batch) readExchange(body chat.Object) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		for m, err := range readMessages("request_messages")(b, body) {
			if !yield(m, err) || err != nil {
				return
			}
		}
		yield(readAnswer(body, "response_dict", func(int) string { return "call_" + uuid.NewString() }))
	}
}

// readAnswer reads the answer of a provider in a field, and gives its calls ids that are unique in it. The request may
// name the model.
func readAnswer(body chat.Object, name string, newID func(index int) string) (m message, err error) {
	m.Draft, m.at = body.ReadAnswer(name)
	if ending := body.Ending(name); ending == chat.Length || ending == chat.Filtered {
		m.Content = chat.CutOff(m.Content)
	}
	chat.NameCalls(m.Content, newID)
	m.Model = cmp.Or(body.Optional("model"), m.Model)
	return m, body.Err()
}
