package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/mcp"
	"github.com/loci-memory/loci/server/rest"
)

// agentHeader is the header that names the agent in a request to /mcp.
const agentHeader = "Loci-Agent"

func (s *Server) mcpRoutes(a *rest.API) {
	m := &mcpRoutes{Server: s, api: a, mcp: s.newMCP(a)}
	text := &huma.Schema{Type: huma.TypeString}
	for _, route := range []struct{ method, doc string }{
		{http.MethodPost, "send_mcp_message: Send a message of the Model Context Protocol to an agent's memory. Calls of " +
			"tools need the scope tools or write."},
		{http.MethodGet, "stream_mcp_messages: Follow the messages of a session of the Model Context Protocol."},
		{http.MethodDelete, "delete_mcp_session: End a session of the Model Context Protocol."},
	} {
		op := huma.Operation{Method: route.method, Path: "/mcp/agents/{agent_id}", Summary: route.doc,
			Parameters: []*huma.Param{rest.IDParam("agent_id", "agent"),
				{Name: "tools", In: "query", Schema: text, Description: "The tools that are shown: names of tools and groups of " +
					"tools (files, recall, blocks, working_memory, memory_files, archival, subagents, erasure, session), with " +
					"commas; all of the agent's if absent."}},
			Responses: map[string]*huma.Response{"200": {Description: "As the protocol says."}}}
		if route.method == http.MethodPost {
			op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{rest.JSON: {
				Schema: &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}}}}
		}
		a.For(rest.ReadAgent).Stream(op, m.serve, rest.Own, rest.WithUsers, rest.OnlyWaits(listens))
		a.For(rest.AnyKey).Hidden(route.method, "/mcp", m.serveNamed, rest.Own, rest.WithUsers,
			rest.OnlyWaits(listens))
	}
}

// listens reports whether a request only waits for changes.
func listens(r *http.Request) bool { return r.Header.Get(mcp.MethodHeader) == mcp.Listen }

// mcpRoutes handles requests of the Model Context Protocol.
type mcpRoutes struct {
	*Server
	api *rest.API
	mcp *mcp.Server
}

func (s *Server) newMCP(a *rest.API) *mcp.Server {
	return mcp.New(mcp.Options{DB: s.DB, Agents: s.Agents, Tools: s.Tools, Files: s.Files, Recall: s.Recall,
		Blocks: s.Blocks, MemoryFiles: s.MemoryFiles, Handovers: s.Handovers, Followers: s.Followers, Version: s.Version,
		Log: s.Log, Timeout: cmp.Or(s.RequestTimeout, rest.DefaultTimeout), FilesEvery: s.MCPFilesEvery,
		Lacks: s.lacksTool, InForce: s.inForce, Fault: rest.Fault, Remember: s.remember, Explain: a.Explain,
		Fixtures: s.MCPFixtures})
}

// remember appends turns, as capture does.
func (s *Server) remember(ctx context.Context, a agent.Agent, conversation string, turns []recall.Draft) (
	[]recall.Appended, error) {
	recorded, err := s.Loop.Record(ctx, rest.Org(ctx), a, loop.Record{Conversation: conversation,
		Drafts: recall.Each(turns), Leaves: true})
	if err != nil {
		return nil, runProblem(err)
	}
	// The turns are stored: a later failure must not fail the call.
	if err := s.Agents.AfterAppend(ctx, rest.Org(ctx), a, recorded.Conversation); err != nil {
		s.Log.WarnContext(ctx, "what follows an append is not queued", "conversation", recorded.Conversation.ID, "error",
			err)
	}
	return recorded.Messages, nil
}

// serveNamed handles a request to /mcp. The agent is the one that a header names, or the only one that the key allows.
func (m *mcpRoutes) serveNamed(c echo.Context) error {
	if err := agentNamedOnce(c.Request()); err != nil {
		return err
	}
	id := c.Request().Header.Get(agentHeader)
	if key := rest.Caller(c.Request().Context()); id == "" && len(key.AgentIDs) == 1 {
		id = key.AgentIDs[0]
	}
	if id == "" {
		return rest.Unprocessable("header."+agentHeader, "name the agent: in this header, in the path "+
			"/mcp/agents/{agent_id}, or with a key that is for one agent")
	}
	if err := m.api.ForAgent(c, id); err != nil {
		return err
	}
	return m.serve(c)
}

// agentNamedOnce returns an error if the request has the header with the agent twice.
func agentNamedOnce(r *http.Request) error {
	if why := mcp.Twice(r.Header, agentHeader); why != "" {
		return rest.Malformed(why)
	}
	return nil
}

// serve handles a request for the agent in the path.
func (m *mcpRoutes) serve(c echo.Context) error {
	if err := m.refuseOtherOrigins(c.Request()); err != nil {
		return err
	}
	id, err := rest.PathID(c, "agent_id", "agent")
	if err != nil {
		return err
	}
	if err := agentNamedOnce(c.Request()); err != nil {
		return err
	}
	if headerID := c.Request().Header.Get(agentHeader); headerID != "" && headerID != id {
		return rest.Unprocessable("header."+agentHeader, "is another agent than that of the path: leave it out")
	}
	ctx := c.Request().Context()
	key := rest.Caller(ctx)
	caller := mcp.Caller{Org: rest.Org(ctx), AgentID: id, KeyID: key.ID, User: key.UserKey,
		MayCall: rest.MayRunTools(key, id)}
	if err := onlyTools(c.QueryParams()); err != nil {
		return err
	}
	if caller.Only, err = m.chosen(c.QueryParams()); err != nil {
		return err
	}
	body, release, err := m.api.Hold(c, mcp.MaxBodyBytes)
	defer release()
	if err != nil {
		return err
	}
	if c.Request().Method == http.MethodPost && !json.Valid(body) {
		return rest.Malformed("body: it is not one JSON value")
	}
	ctx, w, stop := m.api.KeepOpen(c, func(problem error) string {
		_, sentence := m.api.Explain(ctx, problem)
		return mcp.LastEvent(body, sentence)
	})
	defer stop()
	err = m.mcp.Serve(w, c.Request().WithContext(ctx), caller, body)
	if problem, ok := errors.AsType[*mcp.Problem](err); ok {
		return rest.StatusProblem(problem.Status, problem.Sentence)
	}
	return err
}

// onlyTools returns an error for a query parameter other than tools: a client that misspelled it would get all tools.
func onlyTools(query url.Values) error {
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if name != "tools" {
			return rest.Unprocessable("query."+db.Short(name), "there is no such parameter; the only one is tools")
		}
	}
	return nil
}

// sessionTools is the group of the tools that store a client's turns.
const sessionTools = "session"

// chosen returns the tools that a query selects; nil for all.
func (m *mcpRoutes) chosen(query url.Values) ([]string, error) {
	if !query.Has("tools") {
		return nil, nil
	}
	words := strings.Split(strings.Join(query["tools"], ","), ",")
	for i, word := range words {
		words[i] = strings.TrimSpace(word)
	}
	tools, err := m.Tools.Chosen(words, map[string]string{mcp.RememberTurns: sessionTools})
	if err != nil {
		return nil, rest.Unprocessable("query.tools", err.Error())
	}
	return tools, nil
}

// refuseOtherOrigins returns an error for a request from a web page of another host that may not call the API.
func (m *mcpRoutes) refuseOtherOrigins(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" || m.Origins.Allow(origin) {
		return nil
	}
	if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Host, r.Host) {
		return rest.Forbidden("MCP is not served to the pages of " + origin + ": use a program that is no web page, " +
			"serve the page from the host of this server, or name its origin in LOCI_CORS_ORIGINS")
	}
	return nil
}
