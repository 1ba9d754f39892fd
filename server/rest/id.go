package rest

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
)

// uuid4 matches the UUIDs that Letta's clients make and check: lower case, version 4.
const uuid4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

// ID is an id in a path: the name of the type Kind, a dash and a UUID. An id of another form gets a 422 before any
// query.
type ID[Kind any] string

// Schema implements huma.SchemaProvider.
func (ID[Kind]) Schema(huma.Registry) *huma.Schema { return idSchema(reflect.TypeFor[Kind]().Name()) }

// The kinds of ids. A folder's ids begin with source, as in Letta.
type (
	agent      struct{}
	source     struct{}
	file       struct{}
	tool       struct{}
	block      struct{}
	archive    struct{}
	compaction struct{}
	message    struct{}
	org        struct{}
	run        struct{}
	step       struct{}
	identity   struct{}
	key        struct{}
	tree       struct{}
	child      struct{}
	handover   struct{}
	erasure    struct{}
	replay     struct{}
	session    struct{}
)

// The ids of resources.
type (
	// AgentID is an agent's.
	AgentID = ID[agent]
	// FolderID is a folder's.
	FolderID = ID[source]
	// FileID is a file's.
	FileID = ID[file]
	// ToolID is a tool's.
	ToolID = ID[tool]
	// BlockID is a block's.
	BlockID = ID[block]
	// ArchiveID is an archive's.
	ArchiveID = ID[archive]
	// CompactionID is a compaction's.
	CompactionID = ID[compaction]
	// MessageID is a message's.
	MessageID = ID[message]
	// OrganizationID is an organization's.
	OrganizationID = ID[org]
	// RunID is a run's.
	RunID = ID[run]
	// StepID is a step's.
	StepID = ID[step]
	// IdentityID is an identity's.
	IdentityID = ID[identity]
	// KeyID is an API key's.
	KeyID = ID[key]
	// TreeID is a memory tree's.
	TreeID = ID[tree]
	// ChildID is a sub-agent's.
	ChildID = ID[child]
	// HandoverID is a hand-over's.
	HandoverID = ID[handover]
	// ErasureID is an erasure's.
	ErasureID = ID[erasure]
	// ReplayID is a replay's.
	ReplayID = ID[replay]
	// SessionID identifies a session of the console.
	SessionID = ID[session]
)

// ConversationID may also be 'default', or an agent's id for its default conversation.
type ConversationID string

var uuidForm = regexp.MustCompile("^" + uuid4 + "$")

// PathID reads an id from the path of a streamed operation, and checks its form.
func PathID(c echo.Context, param, prefix string) (string, error) {
	id := c.Param(param)
	if uuid, ok := strings.CutPrefix(id, prefix+"-"); !ok || !uuidForm.MatchString(uuid) {
		return "", Unprocessable("path."+param, fmt.Sprintf("expected string to be %s. Got: %q", idRule(prefix), id))
	}
	return id, nil
}

// Schema implements huma.SchemaProvider.
func (ConversationID) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: "^(default|(conv|agent)-" + uuid4 + ")$",
		PatternDescription: idRule("conv") + "; or 'default', together with an agent's id; or an agent's id for its " +
			"default conversation", Examples: []any{"conv-" + exampleUUID}}
}

// Of returns the ids of the agent and the conversation. agentID is the agent's id that the request gave besides the
// conversation; it may be empty.
func (id ConversationID) Of(agentID string) (agent, conversation string) {
	if strings.HasPrefix(string(id), "agent-") {
		return string(id), recall.DefaultConversation
	}
	return agentID, string(id)
}

// OfAgent returns the id of a conversation of an agent. ErrNotFound if id means the default conversation of another
// agent.
func (id ConversationID) OfAgent(agentID string) (string, error) {
	named, conversation := id.Of(agentID)
	if named != agentID {
		return "", db.NotFound("Conversation with ID %s not found", id)
	}
	return conversation, nil
}

func idSchema(prefix string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: "^" + prefix + "-" + uuid4 + "$",
		PatternDescription: idRule(prefix), Examples: []any{prefix + "-" + exampleUUID}}
}

const exampleUUID = "123e4567-e89b-42d3-8456-426614174000"

func idRule(prefix string) string {
	return prefix + "- and a lower-case UUID, such as " + prefix + "-" + exampleUUID
}

// ClipID is the id of a clipped text or of a message, or a range of an agent's log.
type ClipID string

// Schema implements huma.SchemaProvider. A message's UUID may be of any version, because messages may come from
// elsewhere.
func (ClipID) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString,
		Pattern:            `^(clip|message)-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$|^\[?(seq )?\d+([-–]\d+)?\]?$`,
		PatternDescription: idRule("clip") + ", or a range such as 'seq 120-188'",
		Examples:           []any{"seq 120-188"}}
}

// OfAgent holds the path parameter of operations on an agent.
type OfAgent struct {
	AgentID AgentID `path:"agent_id"`
}

// Agent returns the agent's id.
func (o OfAgent) Agent() string { return string(o.AgentID) }

// OfConversation holds the path parameter of operations on a conversation.
type OfConversation struct {
	ConversationID ConversationID `path:"conversation_id"`
}

// OfFolder holds the path parameter of operations on a folder.
type OfFolder struct {
	FolderID FolderID `path:"folder_id"`
}

// PathConversation reads the id of a conversation from the path of a streamed operation, and checks its form.
func PathConversation(c echo.Context) (OfConversation, error) {
	id := ConversationID(c.Param("conversation_id"))
	schema := id.Schema(nil)
	if !regexp.MustCompile(schema.Pattern).MatchString(string(id)) {
		return OfConversation{}, Unprocessable("path.conversation_id", fmt.Sprintf("expected string to be %s. Got: %q",
			schema.PatternDescription, id))
	}
	return OfConversation{id}, nil
}

// ConversationParam describes the id of a conversation in a path.
func ConversationParam() *huma.Param {
	return &huma.Param{Name: "conversation_id", In: "path", Required: true, Schema: ConversationID("").Schema(nil)}
}

// QueryInt reads an integer from the query of a streamed operation. It returns absent if the parameter is missing or
// empty.
func QueryInt(c echo.Context, name string, absent int) (int, error) {
	text := c.QueryParam(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, Unprocessable("query."+name, fmt.Sprintf("expected integer. Got: %.100q", text))
	}
	return n, nil
}
