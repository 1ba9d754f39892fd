// Package letta holds the JSON shapes of Letta V1: agents, messages, memory, files, tools, runs and the requests for
// them.
//
// Each file uses those that are named before it:
//   - what requests for several things share: explain.go validity.go
//   - organizations, identities and models: organization.go identity.go model.go
//   - messages and events: message.go pythontext.go messageitem.go messagelist.go internalmessage.go messagesearch.go
//     event.go
//   - tools: tool.go toolsearch.go customtool.go toolrule.go
//   - memory and files: block.go memoryfile.go archive.go passage.go folder.go foldersearch.go
//   - messages that are sent, and requests to compact: initialmessage.go send.go compaction.go
//   - agents and their conversations: randomname.go agentrequest.go agentleftout.go modelsettings.go agent.go
//     conversation.go
//   - runs, steps and prompts: runitem.go run.go runstep.go prompt.go step.go
//   - the table of Letta's routes: routes.go
package letta

import (
	_ "embed" // for the table
	"encoding/csv"
	"strings"
)

//go:embed routes.csv
var routesTable string

// Route is a route of Letta V1.
type Route struct {
	Method, Path string
	SDK          string // the method of Letta's SDKs that calls the route; empty if none does
	subject      string
}

// Routes returns the routes of Letta V1 and of its SDKs, in the order of the SDKs' methods.
func Routes() (all []Route) {
	rows, err := csv.NewReader(strings.NewReader(routesTable)).ReadAll()
	if err != nil {
		panic("letta: the table of routes is broken: " + err.Error()) // the table is part of the program
	}
	for _, r := range rows[1:] {
		all = append(all, Route{Method: r[0], Path: r[1], SDK: r[2], subject: r[3]})
	}
	return all
}

// WhyNot returns a sentence that says why the route is not served.
func (r Route) WhyNot() string {
	if why := unserved[r.subject]; why != "" {
		return why
	}
	return "This version does not serve this route."
}

// unserved maps subjects of routes to the reason why their routes are not served.
var unserved = map[string]string{
	"admin":        "Organizations are managed by id with /v1/admin/orgs; there are no users.",
	"batches":      "Loci sends no batches of requests to models.",
	"environments": "Environments belong to Letta's cloud.",
	"files":        "An agent is exported by GET of the same path, without skills.",
	"generate":     "Loci does not write tools or texts with a model.",
	"git":          "Blocks have versions of their own (/v1/blocks/{block_id}/versions); there is no repository of them.",
	"groups":       "Loci runs no groups of agents.",
	"internal":     "This route is for Letta's own services.",
	"mcp":          "Loci calls no MCP servers; a client runs their tools and sends the results.",
	"providers":    "The operator configures the endpoints of models; clients cannot add providers.",
	"proxies":      "The gateway has paths of its own for this: /openai/v1 and /anthropic/v1.",
	"sandbox":      "Loci runs no code of its users, so that there is no sandbox to configure.",
	"schedules":    "Loci sends no messages at set times; use a scheduler such as cron.",
	"storage":      "Loci does not report the size of its vectors.",
	"telemetry":    "Loci keeps no traces of steps.",
	"templates":    "Loci has no templates; create each agent with its fields.",
	"tokens":       "Tokens of clients belong to Letta's cloud; create keys with loci keys create.",
	"tools":        "This version keeps no tools of its users; a client runs its own tools and sends the results.",
	"voice":        "Loci has no voice.",
}

// Otherwise maps routes that behave differently than in Letta to the difference.
var Otherwise = map[string]string{
	"PATCH /v1/agents/{agent_id}/messages/{message_id}": "always a 405: messages never change; capture a correction",
	"POST /v1/agents/{agent_id}/messages/capture":       "takes more formats ([more](api.md#formats-of-messages))",
	"POST /v1/agents/{agent_id}/summarize":              "a compaction never throws history away",
	"POST /v1/conversations/{conversation_id}/compact":  "a compaction never throws history away",
	"GET /v1/models/":                                  "the configured model, those of its endpoint, and known ones",
	"GET /v1/models/embedding":                         "the one model that the operator configured, or `words`",
	"PATCH /v1/agents/{agent_id}/files/{file_id}/open": "shows the file at once",
	"GET /v1/agents/{agent_id}/export":                 "`full=true` adds all that it remembers ([more](#agent-files))",
	"POST /v1/agents/import":                           "`left_out` says what Loci does not have ([more](#agent-files))",
}
