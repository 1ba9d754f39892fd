package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/gateway"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// Gateway configures the providers' own APIs as doors to the memories.
type Gateway struct {
	Upstreams gateway.Upstreams
	Mode      string // of agent.GatewayModes, for requests that name none; empty means remember
	OnFailure string // gateway.Pass or gateway.Refuse; empty means Pass

	FindWithin time.Duration // as in gateway.Options
}

func (s *Server) gatewayRoutes(a *rest.API) {
	g := gateway.New(gateway.Options{Agents: s.Agents, Recall: s.Recall, Loop: s.Loop, Tools: s.Tools,
		Upstreams: s.Gateway.Upstreams, Mode: s.Gateway.Mode, OnFailure: s.Gateway.OnFailure,
		FindWithin: s.Gateway.FindWithin,
		Log:        s.Log, User: s.userOf,
		Create: s.createNamed, Embed: s.embedForGateway,
		Ask: func(ctx context.Context, org db.Org) error { return s.Quotas.Ask(ctx, org, time.Now()) },
		Spend: func(ctx context.Context, org db.Org, tokens int64) error {
			return s.Quotas.Spend(ctx, org, time.Now(), tokens)
		}})
	waits := rest.OnlyWaits(func(*http.Request) bool { return true }) // the gateway bounds its requests itself
	for _, prefix := range []string{"", "/agents/{agent_id}", "/k/{key}", "/k/{key}/agents/{agent_id}"} {
		for _, format := range []string{gateway.OpenAI, gateway.Anthropic} {
			for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch,
				http.MethodDelete} {
				a.For(rest.Public).Hidden(method, prefix+"/"+format+"/v1/*", func(c echo.Context) error {
					g.Serve(gatewayCall(a, c, format))
					return nil
				}, rest.Own, waits)
			}
		}
	}
}

// gatewayCall returns the call of a request to the gateway.
func gatewayCall(a *rest.API, c echo.Context, format string) gateway.Call {
	return gateway.Call{Answer: rest.Answer(c), Request: c.Request(), Format: format, Path: c.Param("*"),
		AgentID: c.Param("agent_id"), Key: c.Param("key"),
		Admit: func(secret string) (*http.Request, func(), error) {
			done, err := a.Admit(c, secret, gateway.AdmitTimeout)
			return c.Request(), done, err
		},
		Hold: func(limitBytes int64) ([]byte, func(), error) { return a.HoldAny(c, limitBytes) }}
}

// createNamed creates an agent as a request with a name and a model does, and returns its id.
func (s *Server) createNamed(ctx context.Context, name, handle string) (string, error) {
	var input struct {
		letta.Client
		Body letta.CreateAgent
	}
	fields := map[string]string{"name": name}
	if handle != "" {
		fields["model"] = handle
	}
	if err := json.Unmarshal(chat.Encode(fields), &input.Body); err != nil {
		return "", err
	}
	state, err := s.createAgent(db.WithUser(ctx, 0), &input) // the agent is nobody's, whoever needs it first
	return state.ID, err
}

// embedForGateway answers a request for vectors in OpenAI's form.
func (s *Server) embedForGateway(ctx context.Context, request []byte) (any, error) {
	var input struct{ Body NewEmbeddings }
	if err := json.Unmarshal(request, &input.Body); err != nil {
		return nil, rest.Malformed("body: " + err.Error())
	}
	if f := input.Body.Format.Value; f != "" && f != "float" && f != "base64" {
		return nil, rest.Unprocessable("body.encoding_format", "expected float or base64")
	}
	return s.createEmbeddings(ctx, &input)
}
