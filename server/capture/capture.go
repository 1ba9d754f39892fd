// Its files, in order: recorded.go reads what a provider counted for a recorded prompt; capture.go reads the messages
// of a request, in all formats except Letta's lists; letta.go reads those, and Letta's approvals and results; step.go
// reads the other fields of a step of an agent loop.
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
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/rest"
)

// Batch reads the messages of a request one by one.
type Batch struct {
	Conversation string     // its id, or recall.DefaultConversation
	PromptTokens int        // a provider's count of the prompt; 0 if the request has none
	Usage        chat.Usage // a provider's counts for the answer; zero if the request has none
	Step         *Step      // nil unless the request is a step
	Refused      *Refused
	Stores       bool // the request has messages

	// IsSystemPrompt reports whether a system message repeats the prompt that the server puts before the conversation.
	// Such a message is refused. IsSystemPrompt may be nil.
	IsSystemPrompt func(text string) bool

	fields map[string]json.RawMessage
	lists  map[string]*rest.List
	zone   *time.Location
	read   func(*Batch, chat.Object) iter.Seq2[message, error]
	places []string // places of the messages that were read
	answer int      // index of the answer with the counted prompt; -1 without one
	counts map[int]recordedCount
}

// Refused says that a provider refused the newest prompt of a conversation.
type Refused struct {
	Status  int
	Message string
	OTID    string // the caller's own id of the report; may be empty

	Elsewhere bool // the reason is not in a message
}

// readRefused reads the field refused; nil if it is absent.
func readRefused(request chat.Object) *Refused {
	if !request.Has("refused") {
		return nil
	}
	refused := request.Object("refused")
	r := &Refused{Message: refused.Text("message"), OTID: refused.Text("otid")}
	if json.Unmarshal(refused.JSON("status"), &r.Status) != nil || r.Status < 400 && r.Status != 200 || r.Status > 599 {
		refused.Refuse("status", "expected the HTTP status that the provider answered with, from 400 to 599")
	}
	if refused.Has("place") {
		r.Elsewhere = refused.OneOf("place", "messages", "elsewhere") == "elsewhere"
	}
	if len(r.OTID) > maxOTIDBytes {
		refused.Refuse("otid", fmt.Sprintf("expected at most %d bytes", maxOTIDBytes))
	}
	return r
}

const maxOTIDBytes = 512

// maxMessageBytes bounds a message as written: room for a text of recall.MaxPartBytes with half of it escaped. While
// the message is stored, it takes about five times as much memory.
const maxMessageBytes = recall.MaxPartBytes / 2 * 3

// message is a message that was read, with its place in the request.
type message struct {
	recall.Draft
	at string
	id string // id of a listed item: items with the same id form one message

	counted int // what a provider counted for the prompt that it answered; 0 if it does not say
}

// maxItems is how many list items a message may have on average: Letta lists each part as an item.
const maxItems = 4

// Read reads a request except its messages. Times without an offset are in zone.
func Read(body *rest.Spool, zone *time.Location) (*Batch, error) {
	b, request, err := open(body, zone, rest.Lists{Names: []string{"messages", "input", "request_messages"},
		Others: []string{"conversation_id", "provider", "model", "usage", "response_dict", "refused"}})
	if err != nil {
		return nil, err
	}
	b.Usage = request.Usage("usage")
	if b.PromptTokens = request.PromptTokens("usage"); !request.Has("usage") {
		b.countAnswer(body, "response_dict")
	}
	b.read, b.Refused, b.Stores = readMessages("messages"), readRefused(request), true
	switch {
	case b.Refused != nil && request.Has("response_dict"):
		request.Refuse("refused", "cannot stand beside response_dict: the provider answered or refused")
	case b.Refused != nil && !request.Has("messages") && !request.Has("input") && !request.Has("request_messages"):
		b.Stores = false
	case request.Has("messages") && request.Has("request_messages"):
		request.Refuse("request_messages", "cannot stand beside messages")
	case request.Has("request_messages") || request.Has("response_dict"):
		b.read = (*Batch).readExchange
		if isGoogles(request.Needed("provider")) {
			request.Refuse("provider", "Google's format is not understood; send the turns as messages in the format of OpenAI, "+
				"Anthropic or Letta")
		}
		b.checkList(request, "request_messages")
	case request.Has("input") && !request.Has("messages"):
		b.read = readMessages("input")
		b.checkList(request, "input")
	default:
		b.checkList(request, "messages")
	}
	return b, unprocessable(request.Err())
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
	request := chat.NewObject(fields, zone)
	b := &Batch{Conversation: cmp.Or(request.Text("conversation_id"), recall.DefaultConversation), fields: fields,
		lists: lists,
		zone:  zone}
	return b, request, nil
}

// OfMessages returns a batch of messages that are in memory.
func OfMessages(messages json.RawMessage, zone *time.Location) *Batch {
	return &Batch{Conversation: recall.DefaultConversation, zone: zone, read: readMessages("messages"),
		fields: map[string]json.RawMessage{"messages": messages}}
}

// Input returns the messages of an input field, which may hold messages, a text of the user, or the parts of such a
// text.
func Input(input json.RawMessage) json.RawMessage {
	var parts []struct {
		Type string `json:"type"`
		Role string `json:"role"`
	}
	isParts := json.Unmarshal(input, &parts) == nil && len(parts) > 0 && parts[0].Role == "" &&
		chat.PlainParts[parts[0].Type] != nil
	if !isParts && !bytes.HasPrefix(input, []byte(`"`)) {
		return input
	}
	return chat.Encode(map[string]any{"role": "user", "content": input})
}

// countAnswer reads the provider's token count of the prompt from an answer. It ignores an impossible count with a
// warning, because the answer matters more.
func (b *Batch) countAnswer(body *rest.Spool, answer string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(b.fields[answer], &fields) == nil {
		b.countOf(body, answer, fields)
	}
}

// countOf is countAnswer for the fields of an object at a place.
func (b *Batch) countOf(body *rest.Spool, place string, fields map[string]json.RawMessage) {
	object := chat.NewObject(fields, b.zone)
	object.At = place
	b.PromptTokens, b.Usage = object.PromptTokens("usage"), object.Usage("usage")
	if err := object.Err(); err != nil {
		b.PromptTokens, b.Usage = 0, chat.Usage{}
		body.Warn(err.Error() + ". The usage is ignored")
	}
}

// checkList refuses a field that is neither a message nor a list with items.
func (b *Batch) checkList(in chat.Object, name string) {
	if list := b.lists[name]; list != nil && list.Len > 0 || list == nil && len(in.Items(name, oneOrMore)) > 0 {
		return
	}
	in.Refuse(name, "expected at least one message")
}

const oneOrMore = "a message, or a list of them"

// Drafts yields the messages in order, for the log to append. An error is the last thing that it yields, and names the
// first wrong place. It may be ranged over several times.
func (b *Batch) Drafts() iter.Seq2[recall.Draft, error] {
	return func(yield func(recall.Draft, error) bool) {
		b.places, b.answer, b.counts = nil, -1, map[int]recordedCount{}
		state, own := "", sync.OnceValue(b.hasState)
		for m, err := range approved(joined(b.read(b, chat.NewObject(b.fields, b.zone)))) {
			if err == nil && chat.DropState(&m.Draft) {
				state = m.at
				continue
			}
			chat.DropMarks(&m.Draft, own)
			if m.Role == recall.Assistant && (b.Step == nil || b.answer < 0) {
				b.answer = len(b.places)
			}
			if m.Role == recall.Assistant && m.counted > 0 && m.Model != nil {
				b.counts[len(b.places)] = recordedCount{m.counted, *m.Model}
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
		if len(b.places) == 0 && state != "" {
			yield(recall.Draft{}, rest.Unprocessable(state, "this is the state at the end of a prompt, which is no message: "+
				"leave it out, and send what the model answered"))
		}
	}
}

// hasState reports whether the messages are those of a prompt of Loci, with the state at its end.
func (b *Batch) hasState() bool {
	for m, err := range b.read(b, chat.NewObject(b.fields, b.zone)) {
		if err != nil || chat.HasState(m.Draft) {
			return err == nil
		}
	}
	return false
}

// isSystemPrompt reports whether a message repeats the prompt that the server puts before the conversation.
func (b *Batch) isSystemPrompt(d recall.Draft) bool {
	return d.Role == recall.System && b.IsSystemPrompt != nil && len(d.Content) == 1 &&
		b.IsSystemPrompt(d.Content[0].Text)
}

// Locate adds the place in the request to an error that the log returned.
func (b *Batch) Locate(err error) error {
	draft, ok := errors.AsType[*recall.DraftError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, db.ErrConflict):
		return db.Conflict("%s: %v", b.places[draft.At], draft.Err)
	case errors.Is(err, db.ErrInvalid):
		return rest.Unprocessable(b.places[draft.At], draft.Err.Error())
	}
	return err
}

// form is a format of messages. read records errors in the item.
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

// isGoogles reports whether a provider's API uses Google's format. Nearly all others use OpenAI's.
func isGoogles(provider string) bool {
	name := strings.ToLower(provider)
	return slices.ContainsFunc([]string{"google", "gemini", "vertex"}, func(part string) bool {
		return strings.Contains(name, part) && !strings.Contains(name, "anthropic")
	})
}

// readMessages reads the list of messages in a field, or a single message. It stops at the first message with an error.
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
				var messages []message
				if !body.Failed() {
					messages = readMessage(item)
				}
				if body.Failed() {
					yield(message{}, body.Err())
					return
				}
				for _, m := range messages {
					if !yield(m, nil) {
						return
					}
				}
			}
		}
	}
}

// items yields the items of a field that is a list, or the field itself.
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

// readMessage reads a message. It may become two messages of the log: the tool results in it, and the rest.
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
		t.IsErr, t.counted = m.Flag("is_err"), countOf(m)
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

// answerItem is the id that all items of an answer share in OpenAI's Responses API.
const answerItem = "answer"

// numbered returns the otid of the nth message that comes from a request or message with an otid.
func numbered(otid string, n int) string { return fmt.Sprintf("%s:%d", otid, n) }

// joined joins list items that are parts of the same message.
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

// joins reports whether the next list item belongs to this message. It lets a message exceed recall.MaxParts by one
// item, so that the log refuses it.
func (m *message) joins(next message) bool {
	return next.id != "" && m.id == next.id && m.Role == next.Role && len(m.Content) <= recall.MaxParts
}

// unprocessable turns the error of a field into a 422. It passes other errors on.
func unprocessable(err error) error {
	if field, ok := errors.AsType[*chat.FieldError](err); ok {
		return rest.Unprocessable(field.At, field.Rule)
	}
	return err
}

// readExchange reads the messages of a request to a provider, and then the provider's answer.
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

// readAnswer reads a provider's answer from a field, and gives its calls unique ids. The request may name the model.
func readAnswer(body chat.Object, name string, newID func(index int) string) (m message, err error) {
	m.Draft, m.at = body.ReadAnswer(name)
	if ending := body.Ending(name); ending == chat.Length || ending == chat.Filtered {
		m.Content = chat.CutOff(m.Content)
	}
	chat.NameCalls(m.Content, newID)
	m.Model = cmp.Or(body.Optional("model"), m.Model)
	return m, body.Err()
}
