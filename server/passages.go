package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/server/rest"
)

// ArchivalPassage is a passage of an archive in Letta's shape. Vectors are not shown.
type ArchivalPassage struct {
	archival.Passage
	Embedding       rest.Null `json:"embedding"`
	EmbeddingConfig rest.Null `json:"embedding_config"`
	SourceID        rest.Null `json:"source_id"`
	FileID          rest.Null `json:"file_id"`
	FileName        rest.Null `json:"file_name"`
	IsDeleted       bool      `json:"is_deleted"`
	CreatedByID     rest.Null `json:"created_by_id"`
	LastUpdatedByID rest.Null `json:"last_updated_by_id"`
	Duplicate       bool      `json:"duplicate,omitempty" doc:"The archive had this text already: the passage is the one it has."`
}

func passageOf(p archival.Passage) ArchivalPassage { return ArchivalPassage{Passage: p} }

func insertedOf(list []archival.Inserted) []ArchivalPassage {
	passages := make([]ArchivalPassage, len(list))
	for i, p := range list {
		passages[i] = ArchivalPassage{Passage: p.Passage, Duplicate: p.Duplicate}
	}
	return passages
}

// NewPassage is what a passage is created from.
type NewPassage struct {
	Text      string                `json:"text"`
	Tags      rest.Opt[[]string]    `json:"tags,omitzero"`
	Metadata  rest.Opt[rest.Object] `json:"metadata,omitzero"`
	CreatedAt rest.Opt[string]      `json:"created_at,omitzero" doc:"When what it says was so, in ISO 8601."`
}

func (p NewPassage) draft() (archival.Draft, error) {
	d := archival.Draft{Text: p.Text, Tags: p.Tags.Value, Metadata: json.RawMessage(p.Metadata.Value)}
	if p.CreatedAt.Value == "" {
		return d, nil
	}
	when, err := recall.ParseStart(p.CreatedAt.Value, time.UTC)
	if err != nil {
		return d, db.Invalid("created_at: '%s' is not a time in ISO 8601, such as 2024-05-01T12:00:00Z", p.CreatedAt.Value)
	}
	d.HappenedAt = when
	return d, nil
}

// UpdatePassage changes the fields that it has; null leaves one alone.
type UpdatePassage struct {
	Text     rest.Opt[string]      `json:"text,omitzero"`
	Tags     rest.Opt[[]string]    `json:"tags,omitzero"`
	Metadata rest.Opt[rest.Object] `json:"metadata,omitzero"`
}

// AgentPassage is the path of a passage in an agent's archives.
type AgentPassage struct {
	rest.OfAgent
	PassageID string `path:"memory_id"`
}

func (s *Server) archivalRoutes(a *rest.API) {
	const get, post, patch, del = http.MethodGet, http.MethodPost, http.MethodPatch, http.MethodDelete
	const own = "/v1/agents/{agent_id}/archival-memory"
	rest.Route(a, post, own, "Insert a passage into an agent's archive", s.createPassage)
	rest.Route(a, get, own, "List an agent's passages", s.listPassages)
	rest.Route(a, get, own+"/search", "Search an agent's passages", s.searchPassages)
	rest.Route(a, patch, own+"/{memory_id}", "Change a passage of an agent", s.updatePassage)
	rest.Route(a, del, own+"/{memory_id}", "Delete a passage of an agent", s.deletePassage)
	rest.Route(a, post, "/v1/passages/search", "Search passages", s.searchAllPassages)

	rest.Route(a, post, "/v1/archives", "Create an archive", s.createArchive)
	rest.Route(a, get, "/v1/archives", "List archives", s.listArchives)
	rest.Route(a, get, "/v1/archives/{archive_id}", "Get an archive", s.getArchive)
	rest.Route(a, patch, "/v1/archives/{archive_id}", "Change an archive", s.updateArchive)
	rest.Route(a, del, "/v1/archives/{archive_id}", "Delete an archive", s.deleteArchive, rest.NoContent)
	rest.Route(a, get, "/v1/archives/{archive_id}/agents", "List the agents that have an archive", s.archiveAgents)
	rest.Route(a, post, "/v1/archives/{archive_id}/passages", "Insert a passage into an archive", s.createArchivePassage)
	rest.Route(a, del, "/v1/archives/{archive_id}/passages/{passage_id}", "Delete a passage of an archive", s.deleteArchivePassage, rest.NoContent)
	rest.Route(a, patch, "/v1/agents/{agent_id}/archives/attach/{archive_id}", "Attach an archive to an agent", s.attachArchive)
	rest.Route(a, patch, "/v1/agents/{agent_id}/archives/detach/{archive_id}", "Detach an archive from an agent", s.detachArchive)
}

func (s *Server) createPassage(ctx context.Context, in *struct {
	rest.OfAgent
	Body NewPassage
}) ([]ArchivalPassage, error) {
	d, err := in.Body.draft()
	if err != nil {
		return nil, err
	}
	list, err := s.Archival.InsertFor(ctx, rest.Org(ctx), string(in.AgentID), []archival.Draft{d})
	return insertedOf(list), err
}

func (s *Server) listPassages(ctx context.Context, in *struct {
	rest.OfAgent
	Search    string         `query:"search" doc:"Part of the text, in any case."`
	Before    string         `query:"before" doc:"Passages earlier than the one with this id."`
	After     string         `query:"after" doc:"Passages later than the one with this id."`
	Limit     int            `query:"limit" minimum:"1" maximum:"1000" default:"100"`
	Ascending rest.Opt[bool] `query:"ascending" doc:"The earliest first; true if absent."`
}) ([]ArchivalPassage, error) {
	p := db.Page{Before: in.Before, After: in.After, Limit: in.Limit, Ascending: !in.Ascending.Set || in.Ascending.Value}
	if !p.Ascending { // after is later, whatever the order
		p.Before, p.After = p.After, p.Before
	}
	list, err := s.Archival.Passages(ctx, rest.Org(ctx), string(in.AgentID), in.Search, p)
	passages := make([]ArchivalPassage, len(list))
	for i, one := range list {
		passages[i] = passageOf(one)
	}
	return passages, err
}

// PassageSearch narrows a search of passages.
type PassageSearch struct {
	Query string   `query:"query" doc:"Nothing is found for one that is blank."`
	Tags  []string `query:"tags,explode"`
	Match string   `query:"tag_match_mode" enum:"any,all"`
	TopK  int      `query:"top_k" minimum:"1" doc:"5 if absent, at most 100."`
	Start string   `query:"start_datetime" doc:"A date or a time in ISO 8601, in the agent's timezone where it names none."`
	End   string   `query:"end_datetime" doc:"A date is the whole of that day."`
}

// FoundPassages are what a search of an agent's passages found.
type FoundPassages struct {
	Count   int            `json:"count"`
	Results []FoundPassage `json:"results"`
}

// FoundPassage is a passage that was found.
type FoundPassage struct {
	ID        string    `json:"id"`
	Content   string    `json:"content"`
	Timestamp string    `json:"timestamp"`
	Tags      []string  `json:"tags"`
	Relevance Relevance `json:"relevance"`
}

// Relevance is why something was found.
type Relevance struct {
	Score       float64 `json:"score"`
	WordsRank   int     `json:"fts_rank" doc:"From 1; 0 if it shares no word with the query."`
	MeaningRank int     `json:"vector_rank" doc:"From 1; 0 if it was not ranked by meaning."`
}

func relevanceOf(h archival.Hit) Relevance { return Relevance{h.Score, h.WordsRank, h.MeaningRank} }

// usualPassages is how many passages a search returns that asks for no number (Letta: 5).
const usualPassages = 5

func (s *Server) searchPassages(ctx context.Context, in *struct {
	rest.OfAgent
	PassageSearch
}) (FoundPassages, error) {
	a, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID))
	if err != nil {
		return FoundPassages{}, err
	}
	zone := a.Zone()
	found := FoundPassages{Results: []FoundPassage{}}
	q := archival.Query{Text: in.Query, AgentID: a.ID, Tags: in.Tags, Match: archival.Match(in.Match), Limit: in.TopK}
	if q.Limit == 0 {
		q.Limit = usualPassages
	}
	if q.Start, q.End, err = span(in.Start, in.End, zone); err != nil {
		return found, err
	}
	if strings.TrimSpace(q.Text) == "" {
		return found, nil
	}
	results, err := s.Archival.Search(ctx, rest.Org(ctx), q)
	for _, h := range results.Hits {
		found.Results = append(found.Results, FoundPassage{ID: h.ID, Content: h.Text, Timestamp: h.HappenedAt.In(zone).Format(time.RFC3339),
			Tags: h.Tags, Relevance: relevanceOf(h)})
	}
	found.Count = len(found.Results)
	return found, err
}

// span reads the ends of a time; each may be empty.
func span(from, to string, zone *time.Location) (start, end *time.Time, err error) {
	if from != "" {
		if start, err = recall.ParseStart(from, zone); err != nil {
			return nil, nil, err
		}
	}
	if to != "" {
		end, err = recall.ParseEnd(to, zone)
	}
	return start, end, err
}

func (s *Server) updatePassage(ctx context.Context, in *struct {
	AgentPassage
	Body UpdatePassage
}) (ArchivalPassage, error) {
	p, err := s.Archival.UpdatePassage(ctx, rest.Org(ctx), string(in.AgentID), in.PassageID, archival.PassageUpdate{Text: in.Body.Text.Pointer(),
		Tags: in.Body.Tags.Value, Metadata: json.RawMessage(in.Body.Metadata.Value)})
	return passageOf(p), err
}

func (s *Server) deletePassage(ctx context.Context, in *AgentPassage) (Message, error) {
	if _, err := s.Agents.Agent(ctx, rest.Org(ctx), string(in.AgentID)); err != nil {
		return Message{}, err
	}
	err := s.Archival.DeletePassage(ctx, rest.Org(ctx), string(in.AgentID), in.PassageID)
	return Message{fmt.Sprintf("Memory id=%s successfully deleted", in.PassageID)}, err
}

// SearchPassages asks for passages of the organization.
type SearchPassages struct {
	Query     rest.Opt[string]   `json:"query,omitzero" doc:"The newest are returned if there is none."`
	AgentID   rest.Opt[string]   `json:"agent_id,omitzero" doc:"In the archives of an agent."`
	ArchiveID rest.Opt[string]   `json:"archive_id,omitzero" doc:"In one archive, where no agent is given."`
	Tags      rest.Opt[[]string] `json:"tags,omitzero"`
	Match     rest.Opt[string]   `json:"tag_match_mode,omitzero" enum:"any,all"`
	Limit     rest.Opt[int]      `json:"limit,omitzero" minimum:"1" maximum:"100" doc:"50 if absent."`
	StartDate rest.Opt[string]   `json:"start_date,omitzero"`
	EndDate   rest.Opt[string]   `json:"end_date,omitzero"`
}

// PassageHit is a passage of the organization that was found.
type PassageHit struct {
	Passage  ArchivalPassage `json:"passage"`
	Score    float64         `json:"score"`
	Metadata Relevance       `json:"metadata"`
}

func (s *Server) searchAllPassages(ctx context.Context, in *struct{ Body SearchPassages }) ([]PassageHit, error) {
	b := in.Body
	q := archival.Query{Text: b.Query.Value, AgentID: b.AgentID.Value, ArchiveID: b.ArchiveID.Value, Tags: b.Tags.Value,
		Match: archival.Match(b.Match.Value), Limit: b.Limit.Value}
	if q.Limit == 0 {
		q.Limit = 50
	}
	var err error
	if q.Start, q.End, err = span(b.StartDate.Value, b.EndDate.Value, time.UTC); err != nil {
		return nil, err
	}
	results, err := s.Archival.Search(ctx, rest.Org(ctx), q)
	hits := make([]PassageHit, len(results.Hits))
	for i, h := range results.Hits {
		hits[i] = PassageHit{Passage: passageOf(h.Passage), Score: h.Score, Metadata: relevanceOf(h)}
	}
	return hits, err
}
