// Package capture reads messages that other programs recorded, in the formats of OpenAI's chat and of Letta, into
// drafts of the log.
package capture

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/rest"
)

// Batch reads the messages of a request one by one.
type Batch struct {
	Conversation string // its id, or recall.DefaultConversation
	PromptTokens int    // a provider's count of the prompt; 0 if the request has none

	fields map[string]json.RawMessage
	lists  map[string]*rest.List
	zone   *time.Location
	read   func(*Batch, chat.Object) iter.Seq2[message, error]
	places []string // of the messages that were read
	answer int      // index of the last message of the assistant, -1 without one
}

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
	fields, lists, err := body.Fields(rest.Lists{Names: []string{"messages", "request_messages"},
		Others:   []string{"conversation_id", "provider", "model", "usage", "response_dict"},
		MaxItems: recall.MaxMessages * maxItems, Rule: "expected an object with messages",
		Remedy: fmt.Sprintf("Send at most %d messages at a time.", recall.MaxMessages)})
	if err != nil {
		return nil, err
	}
	in := chat.NewObject(fields, zone)
	b := &Batch{Conversation: cmp.Or(in.Text("conversation_id"), recall.DefaultConversation), fields: fields, lists: lists,
		zone: zone, read: readTurns}
	b.PromptTokens = b.promptTokens()
	checkUsage(in, fields["usage"])
	switch {
	case in.Has("messages") && in.Has("request_messages"):
		in.Refuse("request_messages", "cannot stand beside messages")
	case in.Has("request_messages") || in.Has("response_dict"):
		b.read = exchanges[likenessOf(in.Needed("provider"))]
		if b.read == nil {
			in.Refuse("provider", "only the format of OpenAI's chat completions is understood so far; send the turns as "+
				"messages in that format, or in Letta's")
		}
		b.checkList(in, "request_messages")
	default:
		b.checkList(in, "messages")
	}
	return b, unprocessable(in.Err())
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
		for m, err := range joinListed(b.read(b, chat.NewObject(b.fields, b.zone))) {
			if m.Role == recall.Assistant {
				b.answer = len(b.places)
			}
			b.places = append(b.places, m.at)
			if !yield(m.Draft, unprocessable(err)) {
				return
			}
		}
	}
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
	read    func(chat.Object) recall.Draft
}

// forms are tried in this order.
var forms = []form{
	{isListed, readListed},
	{isApproval, refuseApproval},
	{isToolReturns, readToolReturns},
	{func(chat.Object) bool { return true }, chat.ReadOpenAI},
}

// exchanges are the readers of calls that a proxy saw, by the format of the provider's API.
var exchanges = map[string]func(*Batch, chat.Object) iter.Seq2[message, error]{
	likeOpenAI: readExchange,
}

// The formats of providers' APIs.
const (
	likeOpenAI    = "openai"
	likeAnthropic = "anthropic"
	likeGoogle    = "google"
)

// likenessOf returns the format of a provider's API. Nearly all have OpenAI's.
func likenessOf(provider string) string {
	name := strings.ToLower(provider)
	for _, other := range []struct{ part, like string }{
		{"anthropic", likeAnthropic}, {"claude", likeAnthropic}, {"bedrock", likeAnthropic},
		{"google", likeGoogle}, {"gemini", likeGoogle}, {"vertex", likeGoogle},
	} {
		if strings.Contains(name, other.part) {
			return other.like
		}
	}
	return likeOpenAI
}

// readTurns reads the field messages.
func readTurns(b *Batch, body chat.Object) iter.Seq2[message, error] {
	return b.readMessages(body, "messages")
}

// readMessages reads a list of messages, or a single one, up to the first in which something is refused.
func (b *Batch) readMessages(body chat.Object, name string) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		n := 0
		for raw, err := range b.items(name) {
			if err != nil {
				yield(message{}, err)
				return
			}
			one := body.Item(name, n, raw)
			n++
			var m message
			if !body.Failed() {
				m = readMessage(one)
			}
			if !yield(m, body.Err()) || body.Failed() {
				return
			}
		}
	}
}

// items yields the items of a list in a field, or the field itself.
func (b *Batch) items(name string) iter.Seq2[json.RawMessage, error] {
	if list := b.lists[name]; list != nil {
		return list.Items()
	}
	return func(yield func(json.RawMessage, error) bool) { yield(b.fields[name], nil) }
}

func readMessage(m chat.Object) message {
	i := slices.IndexFunc(forms, func(f form) bool { return f.matches(m) })
	t := message{Draft: forms[i].read(m), at: m.At}
	t.Name, t.OTID, t.Model = m.Optional("name"), m.Optional("otid"), m.Optional("model")
	t.StepID, t.RunID = m.Optional("step_id"), m.Optional("run_id")
	t.SenderID, t.GroupID = m.Optional("sender_id"), m.Optional("group_id")
	if t.CreatedAt = m.Time("created_at"); t.CreatedAt == nil {
		t.CreatedAt = m.Time("date")
	}
	t.IsErr = m.Flag("is_err")
	if isListed(m) {
		t.id = m.Text("id")
	}
	return t
}

// joinListed joins the items of a list that are parts of one message.
func joinListed(items iter.Seq2[message, error]) iter.Seq2[message, error] {
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

// readExchange reads a request of OpenAI's chat completions and its answer.
func readExchange(b *Batch, body chat.Object) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		for m, err := range b.readMessages(body, "request_messages") {
			if !yield(m, err) || err != nil {
				return
			}
		}
		answer := body.Answer("response_dict")
		var m message
		if !body.Failed() {
			m = readMessage(answer)
			m.Model = cmp.Or(m.Model, body.Optional("model"))
		}
		yield(m, body.Err())
	}
}
