package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/agent"
	"github.com/loci-memory/loci/server/tool"
)

// RememberTurns is the name of the tool that stores what was said.
const RememberTurns = "remember_turns"

const maxTurns = 500

var rememberTool = &sdk.Tool{Name: RememberTurns, Title: "Remember what was said",
	Description: "Store turns of this conversation, so that later sessions find them. Call it after each exchange, or " +
		"before the end, with the turns that were not stored yet, in their order. All are stored, or none.",
	InputSchema: json.RawMessage(fmt.Sprintf(`{"type":"object","required":["turns"],"additionalProperties":false,
		"properties":{
			"turns":{"type":"array","minItems":1,"maxItems":%d,"description":"What was said, in its order.","items":{
				"type":"object","required":["role","text"],"additionalProperties":false,"properties":{
					"role":{"type":"string","enum":["user","assistant"],"description":"Who said it."},
					"text":{"type":"string","description":"What was said, word for word."},
					"id":{"type":"string","description":"An id of your own. A turn whose id is stored already is not stored again."},
					"at":{"type":"string","format":"date-time","description":"When it was said; now if absent."}}}},
			"conversation_id":{"type":"string","description":"Where to store them; the agent's default conversation if absent."}
		}}`, maxTurns)),
	OutputSchema: outputSchema,
	Annotations: &sdk.ToolAnnotations{Title: "Remember what was said", DestructiveHint: new(false),
		OpenWorldHint: new(false)}}

// turns are the arguments of remember_turns.
type turns struct {
	Turns []struct {
		Role recall.Role `json:"role"`
		Text string      `json:"text"`
		ID   *string     `json:"id"`
		At   *time.Time  `json:"at"`
	} `json:"turns"`
	Conversation string `json:"conversation_id"`
}

// inTurns puts the tool's words for those of the messages that turns become.
var inTurns = strings.NewReplacer("body.messages[", "turns[", "messages[", "turns[", "created_at", "at", "otid", "id")

// remember stores turns. A mistake of the model is a result that says so.
func (s *Server) remember(ctx context.Context, a agent.Agent, args json.RawMessage) (tool.Result, error) {
	drafts, conversation, mistake := readTurns(args)
	if mistake != "" {
		return tool.Result{Text: mistake, IsError: true}, nil
	}
	stored, err := s.Remember(ctx, a, conversation, drafts)
	if err != nil {
		status, sentence := s.Explain(ctx, err)
		if status >= http.StatusInternalServerError {
			return tool.Result{}, err
		}
		return tool.Result{Text: inTurns.Replace(sentence), IsError: true}, nil
	}
	there := 0
	for _, m := range stored {
		if m.Repeated {
			there++
		}
	}
	text := fmt.Sprintf("Stored %d of %d turns.", len(stored)-there, len(stored))
	if there > 0 {
		text += fmt.Sprintf(" %d were stored before.", there)
	}
	return tool.Result{Text: text}, nil
}

// readTurns reads the arguments of remember_turns, or says what is wrong with them.
func readTurns(args json.RawMessage) (drafts []recall.Draft, conversation, mistake string) {
	var given turns
	in := json.NewDecoder(bytes.NewReader(args))
	in.DisallowUnknownFields()
	if err := in.Decode(&given); err != nil {
		return nil, "", "The arguments are not as the schema says: " + wrongField(err)
	}
	if _, err := in.Token(); !errors.Is(err, io.EOF) {
		return nil, "", "The arguments are more than one JSON object"
	}
	if n := len(given.Turns); n < 1 || n > maxTurns {
		return nil, "", fmt.Sprintf("turns has %d items; it must have from 1 to %d", n, maxTurns)
	}
	if !storable(given.Conversation) {
		return nil, "", fmt.Sprintf("there is no conversation %.80q", given.Conversation)
	}
	for i, t := range given.Turns {
		if t.Role != recall.User && t.Role != recall.Assistant {
			return nil, "", fmt.Sprintf("turns[%d].role is %.40q; it must be user or assistant", i, t.Role)
		}
		if t.Text == "" {
			return nil, "", fmt.Sprintf("turns[%d].text is empty; leave the turn out", i)
		}
		drafts = append(drafts, recall.Draft{Role: t.Role, Content: []recall.Part{{Type: recall.Text, Text: t.Text}},
			OTID: t.ID, CreatedAt: t.At})
	}
	return drafts, cmp.Or(given.Conversation, recall.DefaultConversation), ""
}

// wrongField says which argument is wrong, in JSON's words.
func wrongField(err error) string {
	if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Sprintf("%s is a %s; turns is a list of objects with role and text, and conversation_id a text",
			cmp.Or(kind.Field, "the whole"), kind.Value)
	}
	if at, ok := errors.AsType[*time.ParseError](err); ok {
		return fmt.Sprintf("at is %.40q; it must be a time such as 2026-05-01T09:30:00Z", at.Value)
	}
	return strings.TrimPrefix(err.Error(), "json: ")
}
