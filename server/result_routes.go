package server

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) resultRoutes(a *rest.API) {
	a.For(rest.Tools).Stream(huma.Operation{
		Method: http.MethodPost, Path: "/v1/agents/{agent_id}/results/fit",
		Summary: "fit_result: Bound a tool's result before its model reads it. The whole is kept for expand and " +
			"query_result.",
		Parameters:  []*huma.Param{rest.IDParam("agent_id", "agent")},
		RequestBody: &huma.RequestBody{Required: true, Content: rest.Content[ResultBody](a, rest.JSON)},
		Responses: map[string]*huma.Response{"200": {Description: "What to show to the model.",
			Content: rest.Content[agent.FittedResult](a, rest.JSON)}},
	}, func(c echo.Context) error { return s.fitResult(a, c) }, rest.Own)
}

// ResultBody is a tool's result that is to be shortened.
type ResultBody struct {
	Text         string           `json:"text" doc:"The whole: a text, lines, or JSON; at most 16 MiB."`
	Tool         string           `json:"tool,omitempty" maxLength:"512" doc:"Its name, for steps that exempt tools."`
	Conversation rest.Opt[string] `json:"conversation_id,omitzero" doc:"The default one if absent."`
	Policy       AnyPolicy        `json:"policy,omitempty" required:"false"`
}

func (s *Server) fitResult(a *rest.API, c echo.Context) error {
	id, err := rest.PathID(c, "agent_id", "agent")
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	if _, err := s.Agents.Agent(ctx, rest.Org(ctx), id); err != nil {
		return err
	}
	body, warnings, err := rest.ReadJSON[ResultBody](a, c, maxMessageBytes)
	if err != nil {
		return err
	}
	conversation, err := rest.ConversationID(body.Conversation.Value).OfAgent(id)
	if err != nil {
		return err
	}
	fitted, err := s.Agents.Fit(ctx, rest.Org(ctx), agent.ResultToFit{AgentID: id, Conversation: conversation,
		Text: body.Text, Tool: body.Tool, Policy: json.RawMessage(body.Policy)})
	if err != nil {
		return err
	}
	return warnings.Answer(c, http.StatusOK, fitted)
}
