package server

import (
	"context"
	"encoding/json"

	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/gateway"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// Gateway configures the providers' own APIs as doors to the memories.
type Gateway struct {
	Upstreams gateway.Upstreams
	Mode      gateway.Mode // of requests that name none; empty means Remember
	OnFailure string       // gateway.Pass or gateway.Refuse; empty means Pass
}

func (s *Server) gatewayRoutes(a *rest.API) {
	gateway.New(gateway.Options{API: a, Agents: s.Agents, Recall: s.Recall, Loop: s.Loop, Tools: s.Tools,
		Upstreams: s.Gateway.Upstreams, Mode: s.Gateway.Mode, OnFailure: s.Gateway.OnFailure, Log: s.Log, User: s.userOf,
		Create: s.createNamed}).Routes()
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
	state, err := s.createAgent(ctx, &input)
	return state.ID, err
}
