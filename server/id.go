package server

import (
	"regexp"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loci-memory/loci/recall"
)

// uuid4 is the form of the ids that Letta's clients make and check: lower case, version 4.
const uuid4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

// Ids in a path. One that is not of its kind's form is a 422, before anything is looked up.
type (
	agentID   string
	folderID  string
	fileID    string
	toolID    string
	blockID   string
	archiveID string

	compactionID string

	messageID      string
	conversationID string // may also be 'default', or an agent's id for its default conversation
)

var (
	agentIDForm   = regexp.MustCompile("^agent-" + uuid4 + "$")
	folderIDForm  = regexp.MustCompile("^source-" + uuid4 + "$")
	fileIDForm    = regexp.MustCompile("^file-" + uuid4 + "$")
	archiveIDForm = regexp.MustCompile("^archive-" + uuid4 + "$")
)

// Schema implements huma.SchemaProvider.
func (agentID) Schema(huma.Registry) *huma.Schema { return idSchema("agent") }

// Schema implements huma.SchemaProvider.
func (folderID) Schema(huma.Registry) *huma.Schema { return idSchema("source") }

// Schema implements huma.SchemaProvider.
func (fileID) Schema(huma.Registry) *huma.Schema { return idSchema("file") }

// Schema implements huma.SchemaProvider.
func (toolID) Schema(huma.Registry) *huma.Schema { return idSchema("tool") }

// Schema implements huma.SchemaProvider.
func (messageID) Schema(huma.Registry) *huma.Schema { return idSchema("message") }

// Schema implements huma.SchemaProvider.
func (conversationID) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: "^(default|(conv|agent)-" + uuid4 + ")$",
		PatternDescription: idRule("conv") + "; or 'default', with an agent's id beside it; or an agent's id for its default conversation"}
}

// of is the conversation as recall has it: an agent's id, which may be empty, and a conversation's. agentID was given beside it.
func (id conversationID) of(agentID string) (agent, conversation string) {
	if strings.HasPrefix(string(id), "agent-") {
		return string(id), recall.DefaultConversation
	}
	return agentID, string(id)
}

// Schema implements huma.SchemaProvider.
func (blockID) Schema(huma.Registry) *huma.Schema { return idSchema("block") }

// Schema implements huma.SchemaProvider.
func (archiveID) Schema(huma.Registry) *huma.Schema { return idSchema("archive") }

// Schema implements huma.SchemaProvider.
func (compactionID) Schema(huma.Registry) *huma.Schema { return idSchema("compaction") }

func idSchema(prefix string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Pattern: "^" + prefix + "-" + uuid4 + "$", PatternDescription: idRule(prefix)}
}

func idRule(prefix string) string {
	return prefix + "- and a lower-case UUID, such as " + prefix + "-123e4567-e89b-42d3-8456-426614174000"
}

// OfAgent is the path of what belongs to an agent.
type OfAgent struct {
	AgentID agentID `path:"agent_id"`
}

// OfConversation is the path of what belongs to a conversation.
type OfConversation struct {
	ConversationID conversationID `path:"conversation_id"`
}

// OfFolder is the path of what belongs to a folder.
type OfFolder struct {
	FolderID folderID `path:"folder_id"`
}
