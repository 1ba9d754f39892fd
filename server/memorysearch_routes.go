package server

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/embed/rank"
	memorysearch "github.com/loci-memory/loci/memory/search"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) memorySearchRoutes(a *rest.API) {
	rest.Get(a.For(rest.ReadAgent), "/v1/agents/{agent_id}/memory-search",
		"search_memory: Search all memories of an agent at once. Working memory, blocks, memory files, passages, files and "+
			"messages, ranked together.",
		withAgent(s, s.searchAllMemories), rest.Own, rest.OfUsers)
}

// MemorySearch is the result of a search in all memories.
type MemorySearch struct {
	Hits       []memorysearch.MemoryFound `json:"hits" doc:"The best first."`
	Ranking    string                     `json:"ranking" enum:"words,words and meaning" doc:"What they were ranked by."`
	KnownPlace string                     `json:"known_place" doc:"What the query names; then no vectors are asked."`
	Note       string                     `json:"note" doc:"What the ranking lacks, or why nothing is found."`

	SearchedFor  string                                  `json:"searched_for,omitempty"`
	Explanations map[memorysearch.Kind]*rank.Explanation `json:"explain,omitempty" doc:"Of each kind, with explain=true."`
}

func (s *Server) searchAllMemories(ctx context.Context, a agent.Agent, input *struct {
	rest.OfAgent
	Query string   `query:"query" required:"true" doc:"Words or a question."`
	Kinds []string `query:"kinds,explode" enum:"working_memory,block,memory_file,passage,file,message" doc:"Else all."`
	Limit int      `query:"limit" minimum:"1" maximum:"50" default:"10"`
	letta.HeldAt
	letta.Narrowed
	letta.SearchMode
	letta.Explained
	OfUser
}) (MemorySearch, error) {
	asOf, err := input.Held(a.Zone())
	if err != nil {
		return MemorySearch{}, err
	}
	mode, err := s.searchMode(input.Mode)
	if err != nil {
		return MemorySearch{}, err
	}
	users, err := s.users(ctx, input.UserID)
	if err != nil {
		return MemorySearch{}, err
	}
	q := memorysearch.Query{Org: rest.Org(ctx), Agent: a, Users: users, Text: input.Query, Limit: input.Limit, Held: asOf,
		Explain: input.Explain, Mode: mode, Weight: input.Weight, Filter: json.RawMessage(input.Filter),
		Kinds: rest.Each(input.Kinds, func(k string) memorysearch.Kind { return memorysearch.Kind(k) })}
	r, err := s.Tools.SearchMemory(ctx, q)
	result := MemorySearch{Hits: r.Hits, Ranking: "words", KnownPlace: r.Known,
		Note: strings.Join(r.Sentences(), " "), SearchedFor: r.SearchedFor, Explanations: r.Explanations}
	if r.Meaning {
		result.Ranking = "words and meaning"
	}
	return result, err
}
