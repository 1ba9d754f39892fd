package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// RememberTurns is the name of the tool that stores what was said.
const RememberTurns = "remember_turns"

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
		}}`, tool.MaxTurns)),
	OutputSchema: outputSchema,
	Annotations: &sdk.ToolAnnotations{Title: "Remember what was said", DestructiveHint: new(false),
		OpenWorldHint: new(false)}}

// inTurns replaces the names of message fields in errors by the tool's own names.
var inTurns = strings.NewReplacer("body.messages[", "turns[", "messages[", "turns[", "created_at", "at", "otid", "id")

// remember stores turns. The model's mistakes become results that describe them.
func (s *Server) remember(ctx context.Context, a agent.Agent, args json.RawMessage) (tool.Result, error) {
	drafts, sent, conversation, err := tool.Turns(RememberTurns, args)
	if err == nil && !storable(conversation) {
		err = db.Invalid("there is no conversation %.80q", conversation)
	}
	if mistake := err; mistake != nil {
		return tool.Result{Text: mistake.Error(), IsError: true}, nil //nolint:nilerr // the model reads the error
	}
	stored, err := s.Remember(ctx, a, cmp.Or(conversation, recall.DefaultConversation), drafts)
	if err != nil {
		status, sentence := s.Explain(ctx, err)
		if status >= http.StatusInternalServerError {
			return tool.Result{}, err
		}
		return tool.Result{Text: inTurns.Replace(sentence), IsError: true}, nil
	}
	fresh := 0
	for _, m := range stored {
		if !m.Repeated {
			fresh++
		}
	}
	text := fmt.Sprintf("Stored %d of %d turns.", fresh, sent)
	switch repeated := sent - fresh; repeated {
	case 0:
	case 1:
		text += " 1 was stored before."
	default:
		text += fmt.Sprintf(" %d were stored before.", repeated)
	}
	return tool.Result{Text: text}, nil
}
