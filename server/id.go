package server

import (
	"regexp"

	"github.com/danielgtaylor/huma/v2"
)

// uuid4 is the form of the ids that Letta's clients make and check: lower case, version 4.
const uuid4 = "[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"

// Ids in a path. One that is not of its kind's form is a 422, before anything is looked up.
type (
	agentID  string
	folderID string
	fileID   string
	toolID   string
)

var (
	agentIDForm  = regexp.MustCompile("^agent-" + uuid4 + "$")
	folderIDForm = regexp.MustCompile("^source-" + uuid4 + "$")
	fileIDForm   = regexp.MustCompile("^file-" + uuid4 + "$")
)

// Schema implements huma.SchemaProvider.
func (agentID) Schema(huma.Registry) *huma.Schema { return idSchema("agent") }

// Schema implements huma.SchemaProvider.
func (folderID) Schema(huma.Registry) *huma.Schema { return idSchema("source") }

// Schema implements huma.SchemaProvider.
func (fileID) Schema(huma.Registry) *huma.Schema { return idSchema("file") }

// Schema implements huma.SchemaProvider.
func (toolID) Schema(huma.Registry) *huma.Schema { return idSchema("tool") }

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

// OfFolder is the path of what belongs to a folder.
type OfFolder struct {
	FolderID folderID `path:"folder_id"`
}
