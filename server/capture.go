package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// maxCaptureBytes bounds a body of turns made elsewhere: a whole conversation may come in one.
const maxCaptureBytes = 64 << 20

// Capture is turns that were made elsewhere, to be kept. Its fields are read by turns, so that each error names its place.
type Capture struct {
	fields map[string]json.RawMessage
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *Capture) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &c.fields) != nil || c.fields == nil {
		return errors.New("expected an object with messages")
	}
	return nil
}

// Schema implements huma.SchemaProvider.
func (Capture) Schema(huma.Registry) *huma.Schema {
	message := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true, Properties: map[string]*huma.Schema{
		"messages": {Type: huma.TypeArray, Items: message, Description: "One message or several, each in the format of OpenAI's chat (roles system, " +
			"developer, user, assistant, tool) or of Letta (to be created, or as listed). Each may have otid, created_at or date, name, step_id, run_id, " +
			"sender_id, group_id and model. A message whose otid is there already is not stored again."},
		"conversation_id": {Type: huma.TypeString, Nullable: true, Description: "Or \"default\", as if absent."},
		"provider":        {Type: huma.TypeString, Description: "In place of messages: what a proxy saw of a call, with request_messages and response_dict."},
		"model":           {Type: huma.TypeString, Description: "That answered, with provider."},
		"usage": {Type: huma.TypeObject, AdditionalProperties: true, Nullable: true, Description: "What the provider counted in the call that the last " +
			"message of the assistant is the answer of: prompt_tokens, or input_tokens with cache_read_input_tokens and cache_creation_input_tokens. " +
			"It is preferred to an estimate of what fills the window."},
		"request_messages": {Type: huma.TypeArray, Items: message},
		"response_dict":    message,
	}}
}

// Captured is what became of the turns, in their order.
type Captured struct {
	ConversationID *string           `json:"conversation_id" doc:"Null for the agent's default conversation."`
	Messages       []recall.Appended `json:"messages"`
}

func (s *Server) capture(ctx context.Context, in *struct {
	OfAgent
	Body Capture
}) (Captured, error) {
	conversation, turns, err := in.Body.read()
	if err != nil {
		return Captured{}, err
	}
	used := in.Body.promptTokens()
	in.Body = Capture{} // it may be large, and is needed no more
	org, agent := orgOf(ctx), string(in.AgentID)
	drafts := make([]recall.Draft, len(turns))
	for i, t := range turns {
		drafts[i] = t.Draft
	}
	out := Captured{}
	var c recall.Conversation
	if out.Messages, c, err = s.Recall.AppendTo(ctx, org, agent, conversation, drafts); err != nil {
		return Captured{}, placed(err, turns)
	}
	if !c.IsDefault {
		out.ConversationID = &c.ID
	}
	if used > 0 {
		err = s.Agents.Report(ctx, org, c, prompted(turns, out.Messages), used)
	}
	if err := s.Agents.CheckWindowSoon(ctx, org, c); err != nil { // the turns are stored, and the next prompt checks the window
		s.Log.WarnContext(ctx, "a window check is not queued", "conversation", c.ID, "error", err)
	}
	return out, err
}

// placed says which turn of the request an error of the log is about.
func placed(err error, turns []turn) error {
	wrong, ok := errors.AsType[*recall.DraftError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, db.ErrConflict):
		return db.Conflict("%s: %v", turns[wrong.At].at, wrong.Err)
	case errors.Is(err, db.ErrInvalid):
		return unprocessable(turns[wrong.At].at, wrong.Err.Error())
	}
	return err
}

// turn is a message that was read, and its place in the request.
type turn struct {
	recall.Draft
	at string
	id string // of a listed item: one after it with the same id is of the same message
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
var exchanges = map[string]func(body item) []turn{
	likeOpenAI: readExchange,
}

// read understands all of a body, or nothing: a refusal names the first place that is wrong.
func (c Capture) read() (conversation string, turns []turn, err error) {
	body := item{trouble: &trouble{}, fields: c.fields}
	if conversation = body.text("conversation_id"); conversation == "" {
		conversation = recall.DefaultConversation
	}
	switch {
	case body.has("messages") && body.has("request_messages"):
		body.refuse("request_messages", "cannot stand beside messages")
	case body.has("request_messages") || body.has("response_dict"):
		turns = readProxied(body)
	case body.has("messages"):
		turns = readMessages(body, "messages")
	default:
		body.refuse("messages", "expected at least one message")
	}
	return conversation, joinListed(turns), body.err()
}

// readProxied reads what a proxy saw of a call of a provider.
func readProxied(body item) []turn {
	provider := body.needed("provider")
	read := exchanges[likenessOf(provider)]
	if read == nil {
		body.refuse("provider", "only the format of OpenAI's chat completions is understood so far; send the turns as messages in that format, or in Letta's")
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
		{"anthropic", likeAnthropic}, {"claude", likeAnthropic}, {"bedrock", likeAnthropic}, {"google", likeGoogle}, {"gemini", likeGoogle}, {"vertex", likeGoogle},
	} {
		if strings.Contains(name, other.part) {
			return other.like
		}
	}
	return likeOpenAI
}

// readMessages reads a list of messages, or a single one.
func readMessages(body item, name string) []turn {
	messages := body.items(name, "a message, or a list of them")
	if len(messages) == 0 {
		body.refuse(name, "expected at least one message")
	}
	turns := make([]turn, 0, len(messages))
	for _, m := range messages {
		if turns = append(turns, readTurn(m)); m.failed() {
			return nil
		}
	}
	return turns
}

func readTurn(m item) turn {
	i := slices.IndexFunc(forms, func(f form) bool { return f.fits(m) })
	t := turn{Draft: forms[i].read(m), at: m.at}
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
func joinListed(turns []turn) []turn {
	var joined []turn
	for _, t := range turns {
		if n := len(joined); n > 0 && t.id != "" && joined[n-1].id == t.id && joined[n-1].Role == t.Role {
			last := &joined[n-1]
			last.Content = append(last.Content, t.Content...)
			last.IsErr = last.IsErr || t.IsErr
			last.OTID = either(last.OTID, t.OTID)
			continue
		}
		joined = append(joined, t)
	}
	return joined
}

// place is that of an item of a list.
func place(list string, i int) string { return fmt.Sprintf("%s[%d]", list, i) }
