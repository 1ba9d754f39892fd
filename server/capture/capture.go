// Package capture reads messages that other programs recorded, in the formats of OpenAI's chat and of Letta, into
// drafts of the log.
package capture

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
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
	fits func(item) bool
	read func(item) recall.Draft
}

// forms are tried in this order.
var forms = []form{
	{fits: isListed, read: readListed},
	{fits: isApproval, read: refuseApproval},
	{fits: isToolReturns, read: readToolReturns},
	{fits: func(item) bool { return true }, read: readChat},
}

// exchanges are the forms of what a proxy saw, by what the provider's API is like.
var exchanges = map[string]func(body item) []message{
	likeOpenAI: readExchange,
}

// Batch reads the whole body. The error names the first place that is wrong.
func (b Body) Batch() (Batch, error) {
	body := item{trouble: &trouble{}, fields: b.fields}
	batch := Batch{Conversation: body.text("conversation_id"), PromptTokens: b.promptTokens()}
	if batch.Conversation == "" {
		batch.Conversation = recall.DefaultConversation
	}
	switch {
	case body.has("messages") && body.has("request_messages"):
		body.refuse("request_messages", "cannot stand beside messages")
	case body.has("request_messages") || body.has("response_dict"):
		batch.messages = readProxied(body)
	case body.has("messages"):
		batch.messages = readMessages(body, "messages")
	default:
		body.refuse("messages", "expected at least one message")
	}
	batch.messages = joinListed(batch.messages)
	return batch, body.err()
}

// readProxied reads what a proxy saw of a call of a provider.
func readProxied(body item) []message {
	provider := body.needed("provider")
	read := exchanges[likenessOf(provider)]
	if read == nil {
		body.refuse("provider", "only the format of OpenAI's chat completions is understood so far; send the turns as "+
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
		{"anthropic", likeAnthropic}, {"claude", likeAnthropic}, {"bedrock", likeAnthropic}, {"google",
			likeGoogle}, {"gemini", likeGoogle}, {"vertex", likeGoogle},
	} {
		if strings.Contains(name, other.part) {
			return other.like
		}
	}
	return likeOpenAI
}

// readMessages reads a list of messages, or a single one.
func readMessages(body item, name string) []message {
	messages := body.items(name, "a message, or a list of them")
	if len(messages) == 0 {
		body.refuse(name, "expected at least one message")
	}
	turns := make([]message, 0, len(messages))
	for _, m := range messages {
		if turns = append(turns, readMessage(m)); m.failed() {
			return nil
		}
	}
	return turns
}

func readMessage(m item) message {
	i := slices.IndexFunc(forms, func(f form) bool { return f.fits(m) })
	t := message{Draft: forms[i].read(m), at: m.at}
	t.Name, t.OTID, t.Model = m.optional("name"), m.optional("otid"), m.optional("model")
	t.StepID, t.RunID = m.optional("step_id"), m.optional("run_id")
	t.SenderID, t.GroupID = m.optional("sender_id"), m.optional("group_id")
	if t.CreatedAt = m.time("created_at"); t.CreatedAt == nil {
		t.CreatedAt = m.time("date")
	}
	t.IsErr = m.flag("is_err")
	if isListed(m) {
		t.id = m.text("id")
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

// place is that of an item of a list.
func place(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
