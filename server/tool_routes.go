package server

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/rank"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) toolRoutes(a *rest.API) {
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/tools",
		"list_agent_tools: List an agent's tools.", withAgent(s, s.agentTools))
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/tools/attach/{tool_id}",
		"attach_tool: Attach a tool to an agent. Again changes nothing.", thenStateIfOld(s, s.attachTool))
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/tools/detach/{tool_id}",
		"detach_tool: Detach a tool from an agent. Again changes nothing.", thenStateIfOld(s, s.detachTool))
	rest.Patch(a.For(rest.Write), "/v1/agents/{agent_id}/tools/approval/{tool_name}",
		"update_tool_approval: Say whether calls of an agent's tool wait for approval. It adds or removes a "+
			"requires_approval rule.",
		thenStateIfOld(s, s.changeApproval))
	rest.Post(a.For(rest.Tools), "/v1/agents/{agent_id}/tools/{tool_name}/run",
		"run_tool: Run one of an agent's tools. An error of the tool, an unknown tool and bad arguments are a 200 with the "+
			"status 'error', for the model to read.",
		withAgent(s, s.runTool), rest.WithUsers)
	rest.Get(a.For(rest.Read), "/v1/tools",
		"list_tools: List tools. Built-in tools come before those of the organization.", s.listTools)
	rest.Get(a.For(rest.Read), "/v1/tools/count",
		"count_tools: Count tools. The filters are those of the list.", s.countTools)
	rest.Post(a.For(rest.Read), "/v1/tools/search",
		"search_tools: Search tools by words and, where an embedding model is configured, by meaning.", s.searchTools)
	rest.Get(a.For(rest.Read), "/v1/tools/{tool_id}", "get_tool: Get a tool.", s.getTool)
	rest.Post(a.For(rest.Write), "/v1/tools",
		"create_tool: Create a tool that the caller runs. It changes the tool of that name if there is one. Models are "+
			"given its schema, and its calls wait for their results.",
		s.putTool)
	rest.Put(a.For(rest.Write), "/v1/tools", "upsert_tool: Create a tool, or change the one of its name.", s.putTool)
	rest.Patch(a.For(rest.Write), "/v1/tools/{tool_id}",
		"update_tool: Change a tool. Fields that are absent or null stay.", s.updateTool)
	rest.Delete(a.For(rest.Write), "/v1/tools/{tool_id}",
		"delete_tool: Delete a tool. It leaves all agents that have it.", s.deleteTool)
	rest.Post(a.For(rest.Write), "/v1/tools/add-base-tools",
		"list_base_tools: List the built-in tools. They are always there, so that nothing is added.", s.baseTools)
}

func toolKey(t letta.Tool) string { return t.ID }

func (s *Server) agentTools(ctx context.Context, a agent.Agent, input *struct {
	rest.OfAgent
	rest.Paging
}) ([]letta.Tool, error) {
	hasFolder, err := s.Files.HasFolder(ctx, rest.Org(ctx), a.ID)
	if err != nil {
		return nil, err
	}
	tools, err := s.toolsOf(ctx, a, hasFolder)
	return rest.Paged(tools, input.Page(10, rest.NewestFirst), toolKey), err
}

// toolsOf returns an agent's tools in Letta's shape.
func (s *Server) toolsOf(ctx context.Context, a agent.Agent, hasFolder bool) ([]letta.Tool, error) {
	var ids []string
	for _, t := range a.Attached {
		ids = append(ids, t.ID)
	}
	a, err := s.inForce(ctx, rest.Org(ctx), a)
	if err != nil {
		return nil, err
	}
	definitions, err := s.Agents.ToolsNamed(ctx, rest.Org(ctx), nil, ids)
	tools := []letta.Tool{}
	for _, t := range s.Tools.Of(a, hasFolder) {
		if !t.ByClient {
			tools = append(tools, letta.ToolOf(t))
			continue
		}
		for _, d := range definitions {
			if d.ID == t.ID {
				tools = append(tools, letta.CustomToolOf(d))
			}
		}
	}
	return tools, err
}

// chosenTools applies a choice of tools to an agent. It returns the names of the agent's built-in tools and the ids of
// its definitions; nil where the choice changes nothing.
func (s *Server) chosenTools(ctx context.Context, c tool.Choice, before agent.Agent, hasFolder bool) (names,
	ids []string,
	err error) {
	definitions, err := s.Agents.ToolsNamed(ctx, rest.Org(ctx), c.Names, c.IDs)
	if err != nil {
		return nil, nil, err
	}
	c, ids = c.Own(definitions)
	c, leftOut := c.WithoutAbsent()
	rest.Warn(ctx, letta.LeftOutTools(leftOut)...)
	names, err = s.Tools.Choose(c, before, hasFolder)
	return names, ids, err
}

// changedTools calls chosenTools for an agent that exists.
func (s *Server) changedTools(ctx context.Context, a agent.Agent, c tool.Choice) (names, ids []string, err error) {
	hasFolder, err := s.Files.HasFolder(ctx, rest.Org(ctx), a.ID)
	if err != nil {
		return nil, nil, err
	}
	return s.chosenTools(ctx, c, a, hasFolder)
}

// ruleTools returns the names of the custom tools that rules name.
func (s *Server) ruleTools(ctx context.Context, rules json.RawMessage) ([]string, error) {
	names := slices.DeleteFunc(letta.ToolRuleNames(rules), s.Tools.Has)
	definitions, err := s.Agents.ToolsNamed(ctx, rest.Org(ctx), names, nil)
	return rest.Each(definitions, func(t agent.CustomTool) string { return t.Name }), err
}

// checkRules returns an ErrInvalid if rules name a tool that does not exist. known are the names of tools that are not
// built in.
func (s *Server) checkRules(rules json.RawMessage, known []string) error {
	for _, name := range letta.ToolRuleNames(rules) {
		if !s.Tools.Has(name) && !slices.Contains(known, name) {
			return db.Invalid("tool_rules: there is no tool %q; create it first (POST /v1/tools), also one that your program "+
				"sends with its messages", db.Short(name))
		}
	}
	return nil
}

// AgentTool holds the path parameters for a tool of an agent.
type AgentTool struct {
	rest.OfAgent
	letta.Client
	ToolID rest.ToolID `path:"tool_id"`
}

func (s *Server) attachTool(ctx context.Context, input *AgentTool) (rest.Null, error) {
	return rest.Null{}, s.changeTools(ctx, input, s.Tools.With, s.Agents.AttachTool)
}

func (s *Server) detachTool(ctx context.Context, input *AgentTool) (rest.Null, error) {
	return rest.Null{}, s.changeTools(ctx, input, s.Tools.Without, s.Agents.DetachTool)
}

// changeTools changes the tools of an agent. builtIn returns the new names for a built-in tool, nil for no change;
// custom makes the change for a definition.
func (s *Server) changeTools(ctx context.Context, input *AgentTool, builtIn func(agent.Agent, string) []string,
	custom func(ctx context.Context, org db.Org, agentID, toolID string) error) error {
	t, err := s.Tools.ByID(string(input.ToolID))
	if err != nil {
		return custom(ctx, rest.Org(ctx), string(input.AgentID), string(input.ToolID))
	}
	if t.NeedsSkills {
		return db.Invalid("an agent has %s while a folder of skills is attached to it, and only then: attach or detach "+
			"the folder", t.Name)
	}
	change := func(a agent.Agent) (*agent.Settings, error) {
		names := builtIn(a, t.Name)
		if names == nil {
			return nil, nil
		}
		return &agent.Settings{Tools: names}, nil
	}
	return s.Agents.ChangeSettings(ctx, rest.Org(ctx), string(input.AgentID), change)
}

// ToolApproval is a request that says whether calls of an agent's tool wait for approval.
type ToolApproval struct {
	rest.OfAgent
	letta.Client
	ToolName string         `path:"tool_name"`
	Required rest.Opt[bool] `query:"requires_approval" deprecated:"true" doc:"Where the body does not say it."`
	Body     letta.Approval
}

func (s *Server) changeApproval(ctx context.Context, input *ToolApproval) (rest.Null, error) {
	required, err := input.Body.Required(input.Required)
	if err != nil {
		return rest.Null{}, err
	}
	change := func(a agent.Agent) (*agent.Settings, error) {
		if !s.hasTool(a, input.ToolName) {
			return nil, db.NotFound("Agent %s has no tool %s: attach it first (PATCH /v1/agents/%s/tools/attach/{tool_id})",
				a.ID, db.Short(input.ToolName), a.ID)
		}
		rules := letta.WithApproval(a.Settings.ToolRules, input.ToolName, required)
		if rules == nil {
			return nil, nil
		}
		return &agent.Settings{ToolRules: rules}, nil
	}
	return rest.Null{}, s.Agents.ChangeSettings(ctx, rest.Org(ctx), string(input.AgentID), change)
}

// hasTool reports whether an agent has a tool, or would have it if it had a folder.
func (s *Server) hasTool(a agent.Agent, name string) bool {
	return s.Tools.Has(name) && a.HasTool(name) ||
		slices.ContainsFunc(a.Attached, func(t agent.AttachedTool) bool { return t.Name == name })
}

func (s *Server) runTool(ctx context.Context, a agent.Agent, input *struct {
	rest.OfAgent
	ToolName string `path:"tool_name"`
	Body     letta.RunTool
}) (letta.ToolRun, error) {
	org := rest.Org(ctx)
	name := s.Tools.Meant(a, input.ToolName)
	c, id := recall.Conversation{IsDefault: true, UserKey: db.UserOf(ctx)}, input.Body.Conversation.Value
	if id == a.ID {
		id = ""
	}
	if id != "" || !a.HasTool(name) { // the conversation may add the tool
		var err error
		if c, err = s.Recall.Conversation(ctx, org, a.ID, id); err != nil {
			return letta.ToolRun{}, err
		}
		if a, err = s.Agents.In(ctx, org, a, c); err != nil {
			return letta.ToolRun{}, err
		}
	}
	caller := tool.CallerIn(org, a, c)
	narrow(&caller, c, input.Body.RecallScope.Value)
	args := json.RawMessage(input.Body.Args.Value)
	result, err := tool.Result{IsError: true}, error(nil)
	if len(args) > 0 {
		result.Text = strings.TrimPrefix(rest.Fault("arguments", args), "arguments.")
	}
	if result.Text == "" {
		result, err = s.runIfHad(ctx, caller, name, args)
	}
	if err == nil && result.Overflow { // as in Letta
		return letta.ToolRun{}, rest.Unprocessable("body.args", result.Text)
	}
	run := letta.ToolRun{Status: "success", Return: result.Text, Files: result.Files}
	if result.IsError {
		run.Status = "error"
	}
	return run, err
}

// runIfHad runs a tool of an agent. If the agent lacks it, the result says which tools it has.
func (s *Server) runIfHad(ctx context.Context, c tool.Caller, name string, args json.RawMessage) (tool.Result, error) {
	lacks, err := s.lacksTool(ctx, c.Org, c.Agent, name)
	if err != nil {
		return tool.Result{}, err
	}
	if lacks == "" {
		return s.Tools.Run(ctx, c, name, args)
	}
	hasFolder, err := s.Files.HasFolder(ctx, c.Org, c.Agent.ID)
	var names []string
	for _, t := range s.Tools.Of(c.Agent, hasFolder) {
		names = append(names, t.Name)
	}
	if s.Tools.Has(name) {
		name = "" // no name like it is meant
	}
	return tool.Result{Text: lacks + " " + tool.Available(name, names), IsError: true}, err
}

// caller returns an agent as the caller of tools, in its default conversation.
func caller(ctx context.Context, a agent.Agent) tool.Caller {
	return tool.CallerIn(rest.Org(ctx), a, recall.Conversation{IsDefault: true, UserKey: db.UserOf(ctx)})
}

// mustHaveTool returns ErrNotFound if an agent lacks a tool.
func (s *Server) mustHaveTool(ctx context.Context, org db.Org, a agent.Agent, name string) error {
	lacks, err := s.lacksTool(ctx, org, a, name)
	if err == nil && lacks != "" {
		err = db.NotFound("%s Attach it (PATCH /v1/agents/%s/tools/attach/{tool_id}), and a folder for tools that work on "+
			"files.", lacks, a.ID)
	}
	return err
}

// lacksTool says in a sentence for the model why an agent cannot use a tool; empty if it can.
func (s *Server) lacksTool(ctx context.Context, org db.Org, a agent.Agent, name string) (string, error) {
	if !a.HasTool(name) {
		if notGranted, err := s.Tools.NotGranted(ctx, org, a, name); err != nil || notGranted != "" {
			return notGranted, err
		}
	}
	tools := s.Tools.Tools()
	i := slices.IndexFunc(tools, func(t tool.Tool) bool { return t.Name == name })
	switch {
	case i < 0 && slices.ContainsFunc(a.Attached, func(t agent.AttachedTool) bool { return t.Name == name }):
		return "", rest.NotServed("Tool " + name + " is a definition, and this server runs no code of its users: run it in " +
			"your own program.")
	case i < 0:
		return cmp.Or(tool.NotRun(name), "There is no tool "+db.Short(name)+"."), nil
	case !a.HasTool(name):
		return "The tool " + name + " is not attached to you.", nil
	case !tools[i].NeedsFolder:
		return "", nil
	}
	hasFolder, err := s.Files.HasFolder(ctx, org, a.ID)
	if err != nil || hasFolder {
		return "", err
	}
	return "The tool " + name + " is not attached to you: it comes with a folder of files, and you have none.", nil
}

// inForce returns an agent with the policy in force in its default conversation.
func (s *Server) inForce(ctx context.Context, org db.Org, a agent.Agent) (agent.Agent, error) {
	of, err := s.Agents.PolicyInForce(ctx, org, a, recall.Conversation{IsDefault: true})
	a.InForce = of.Policy
	return a, err
}

func (s *Server) listTools(ctx context.Context, input *struct {
	letta.ToolFilter
	rest.Paging
}) ([]letta.Tool, error) {
	return s.filteredTools(ctx, input.ToolFilter, input.Page(50, rest.NewestFirst))
}

// filteredTools returns a page of the tools that a filter selects.
func (s *Server) filteredTools(ctx context.Context, filter letta.ToolFilter, p db.Page) ([]letta.Tool, error) {
	f, builtIn, err := filter.Filter(s.Tools.Tools())
	if err != nil {
		return nil, err
	}
	ids, err := s.Agents.ToolIDs(ctx, rest.Org(ctx), f, p)
	if err != nil {
		return nil, err
	}
	definitions, err := s.Agents.ToolsNamed(ctx, rest.Org(ctx), nil, ids)
	all := slices.Concat(builtIn, rest.Each(definitions, letta.CustomToolOf))
	listed := []letta.Tool{}
	for _, id := range ids {
		if i := slices.IndexFunc(all, func(t letta.Tool) bool { return t.ID == id }); i >= 0 {
			listed = append(listed, all[i])
		}
	}
	return listed, err
}

// mostSearchedTools is how many tools a search considers.
const mostSearchedTools = 10_000

func (s *Server) searchTools(ctx context.Context, input *struct {
	letta.Explained
	Body letta.ToolSearch
}) ([]letta.FoundTool, error) {
	if _, err := s.searchMode(input.Body.Mode.Value); err != nil {
		return nil, err
	}
	if err := rank.CheckQuery(input.Body.Query.Value); err != nil {
		return nil, err
	}
	tools, err := s.filteredTools(ctx, letta.ToolFilter{Types: input.Body.Types.Value},
		db.Page{Limit: mostSearchedTools})
	if err != nil {
		return nil, err
	}
	return input.Body.Found(tools, input.Explain, func(query string, texts []string, arms rank.Arms) rank.Ranking {
		arms.Weight = input.Weight
		ranked, remarks := rank.Texts(ctx, s.Endpoint, query, texts, arms)
		rest.Warn(ctx, remarks.Sentences()...)
		return ranked
	}), nil
}

func (s *Server) countTools(ctx context.Context, input *letta.ToolFilter) (int, error) {
	f, builtIn, err := input.Filter(s.Tools.Tools())
	if err != nil {
		return 0, err
	}
	n, err := s.Agents.CountTools(ctx, rest.Org(ctx), f)
	return n + len(builtIn), err
}

func (s *Server) baseTools(context.Context, *struct{}) ([]letta.Tool, error) {
	return rest.Each(s.Tools.Tools(), letta.ToolOf), nil
}

// OfTool holds the path parameter of operations on a tool.
type OfTool struct {
	ToolID rest.ToolID `path:"tool_id"`
}

func (s *Server) getTool(ctx context.Context, input *OfTool) (letta.Tool, error) {
	if t, err := s.Tools.ByID(string(input.ToolID)); err == nil {
		return letta.ToolOf(t), nil
	}
	t, err := s.Agents.Tool(ctx, rest.Org(ctx), string(input.ToolID))
	return letta.CustomToolOf(t), err
}

func (s *Server) putTool(ctx context.Context, input *struct{ Body letta.ToolFields }) (letta.Tool, error) {
	t, err := input.Body.New()
	if err != nil {
		return letta.Tool{}, err
	}
	if err := s.checkToolName(t.Name); err != nil {
		return letta.Tool{}, err
	}
	t, err = s.Agents.PutTool(ctx, rest.Org(ctx), t)
	return letta.CustomToolOf(t), err
}

// checkToolName returns an ErrConflict if a name belongs to a built-in tool.
func (s *Server) checkToolName(name string) error {
	if s.Tools.Has(name) {
		return db.Conflict("%s is the name of a built-in tool: give the function another name", name)
	}
	return nil
}

func (s *Server) updateTool(ctx context.Context, input *struct {
	OfTool
	Body letta.ToolFields
}) (letta.Tool, error) {
	if err := s.mustBeCustom(string(input.ToolID)); err != nil {
		return letta.Tool{}, err
	}
	t, err := s.Agents.ChangeTool(ctx, rest.Org(ctx), string(input.ToolID), func(t *agent.CustomTool) error {
		if err := input.Body.Change(t); err != nil {
			return err
		}
		return s.checkToolName(t.Name)
	})
	return letta.CustomToolOf(t), err
}

// mustBeCustom returns an ErrConflict for a built-in tool.
func (s *Server) mustBeCustom(id string) error {
	if t, err := s.Tools.ByID(id); err == nil {
		return db.Conflict("%s is a built-in tool, which cannot be changed or deleted: detach it from agents that must not "+
			"have it", t.Name)
	}
	return nil
}

func (s *Server) deleteTool(ctx context.Context, input *OfTool) (rest.Null, error) {
	if err := s.mustBeCustom(string(input.ToolID)); err != nil {
		return rest.Null{}, err
	}
	return rest.Null{}, s.Agents.DeleteTool(ctx, rest.Org(ctx), string(input.ToolID))
}
