// Package capture reads messages that other programs recorded, in the formats of OpenAI's chat and of Letta, into
// drafts of the log.
package capture

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/rest"
)

// Body is a request to capture messages. Its fields are read one by one, so that each error names its place.
type Body struct {
	fields map[string]json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Body) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &b.fields) != nil || b.fields == nil {
		return errors.New("expected an object with messages")
	}
	return nil
}

// Batch is the messages of a request, in their order.
type Batch struct {
	Conversation string // its id, or recall.DefaultConversation
	PromptTokens int    // that a provider counted; 0 if the request does not say
	messages     []message
}

// message is a message that was read, and its place in the request.
type message struct {
	recall.Draft
	at string
	id string // of a listed item: items with the same id are one message
}

// Drafts returns the messages for the log to append.
func (b Batch) Drafts() []recall.Draft {
	drafts := make([]recall.Draft, len(b.messages))
	for i, m := range b.messages {
		drafts[i] = m.Draft
	}
	return drafts
}

// Locate names the place in the request that an error of the log is about.
func (b Batch) Locate(err error) error {
	wrong, ok := errors.AsType[*recall.DraftError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, db.ErrConflict):
		return db.Conflict("%s: %v", b.messages[wrong.At].at, wrong.Err)
	case errors.Is(err, db.ErrInvalid):
		return rest.Unprocessable(b.messages[wrong.At].at, wrong.Err.Error())
	}
	return err
}

// form is a form in which a message comes. What read does not understand, it notes in the item.
type form struct {
	fits func(chat.Object) bool
	read func(chat.Object) recall.Draft
}

// forms are tried in this order.
var forms = []form{
	{fits: isListed, read: readListed},
	{fits: isApproval, read: refuseApproval},
	{fits: isToolReturns, read: readToolReturns},
	{fits: func(chat.Object) bool { return true }, read: chat.ReadOpenAI},
}

// exchanges are the forms of what a proxy saw, by what the provider's API is like.
var exchanges = map[string]func(body chat.Object) []message{
	likeOpenAI: readExchange,
}

// Batch reads the whole body; times without an offset are in the zone. The error names the first place that is wrong.
func (b Body) Batch(zone *time.Location) (Batch, error) {
	body := chat.NewObject(b.fields, zone)
	batch := Batch{Conversation: body.Text("conversation_id"), PromptTokens: b.promptTokens()}
	if batch.Conversation == "" {
		batch.Conversation = recall.DefaultConversation
	}
	switch {
	case body.Has("messages") && body.Has("request_messages"):
		body.Refuse("request_messages", "cannot stand beside messages")
	case body.Has("request_messages") || body.Has("response_dict"):
		batch.messages = readProxied(body)
	case body.Has("messages"):
		batch.messages = readMessages(body, "messages")
	default:
		body.Refuse("messages", "expected at least one message")
	}
	batch.messages = joinListed(batch.messages)
	return batch, unprocessable(body.Err())
}

// readProxied reads what a proxy saw of a call of a provider.
func readProxied(body chat.Object) []message {
	provider := body.Needed("provider")
	read := exchanges[likenessOf(provider)]
	if read == nil {
		body.Refuse("provider", "only the format of OpenAI's chat completions is understood so far; send the turns as "+
			"messages in that format, or in Letta's")
		return nil
	}
	return read(body)
}

// The formats of providers' APIs.
const (
	likeOpenAI    = "openai"
	likeAnthropic = "anthropic"
	likeGoogle    = "google"
)

// likenessOf says which format a provider's API has: nearly all have OpenAI's.
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

// maxItems is how many items of a list a message may have on average: Letta lists its parts as items of their own.
const maxItems = 4

// readMessages reads a list of messages, or a single one.
func readMessages(body chat.Object, name string) []message {
	var turns []message
	body.Each(name, "a message, or a list of them", recall.MaxMessages*maxItems, func(m chat.Object) {
		turns = append(turns, readMessage(m))
	})
	if len(turns) == 0 {
		body.Refuse(name, "expected at least one message")
	}
	return turns
}

func readMessage(m chat.Object) message {
	i := slices.IndexFunc(forms, func(f form) bool { return f.fits(m) })
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

// joinListed makes one message of the items into which a list has taken it apart.
func joinListed(turns []message) []message {
	var joined []message
	for _, t := range turns {
		if n := len(joined); n > 0 && t.id != "" && joined[n-1].id == t.id && joined[n-1].Role == t.Role {
			last := &joined[n-1]
			last.Content = append(last.Content, t.Content...)
			last.IsErr = last.IsErr || t.IsErr
			last.OTID = cmp.Or(last.OTID, t.OTID)
			continue
		}
		joined = append(joined, t)
	}
	return joined
}

// unprocessable returns the problem of a request whose field was not understood.
func unprocessable(err error) error {
	if field, ok := errors.AsType[*chat.FieldError](err); ok {
		return rest.Unprocessable(field.At, field.Rule)
	}
	return err
}

// readExchange reads a request of OpenAI's chat completions and its answer.
func readExchange(body chat.Object) []message {
	turns := readMessages(body, "request_messages")
	answer := body.Answer("response_dict")
	if body.Failed() {
		return nil
	}
	t := readMessage(answer)
	t.Model = cmp.Or(t.Model, body.Optional("model"))
	return append(turns, t)
}
