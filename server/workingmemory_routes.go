package server

import (
	"context"
	"errors"

	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) workingMemoryRoutes(a *rest.API) {
	const path = "/v1/conversations/{conversation_id}/working-memory"
	rest.Get(a.For(rest.ReadAgent), path, "get_working_memory: Get a conversation's working memory.", s.workingMemory,
		rest.Own, rest.OfUsers)
	rest.Patch(a.For(rest.Write), path,
		"update_working_memory: Change a conversation's working memory. All changes are made, or none. With If-Match or "+
			"expected_version, only if it is still that version; else a 409.",
		s.updateWorkingMemory, rest.Own)
	rest.Get(a.For(rest.ReadAgent), path+"/versions",
		"list_working_memory_versions: List the versions of a working memory. The newest version first.",
		s.workingMemoryVersions, rest.Own)
	rest.Get(a.For(rest.ReadAgent), path+"/versions/{version}",
		"get_working_memory_version: Get a version of a working memory.", s.workingMemoryVersion, rest.Own)
	rest.Post(a.For(rest.Write), path+"/versions/{version}/restore",
		"restore_working_memory_version: Restore a version of a working memory. It becomes a new version.",
		s.restoreWorkingMemory, rest.Own)
	rest.Get(a.For(rest.ReadAgent), path+"/diff",
		"diff_working_memory: Compare two versions of a working memory. Version 0 is empty.", s.workingMemoryDiff, rest.Own)
	rest.Get(a.For(rest.ReadAgent), path+"/churn",
		"get_working_memory_churn: See how a working memory changes. It compares the newest turns, and says which fields "+
			"are rewritten again and again.",
		s.workingMemoryChurn, rest.Own)
}

// OfWorkingMemory holds the parameters of operations on a conversation's working memory.
type OfWorkingMemory struct {
	rest.OfConversation
	WithAgent
}

// WorkingMemoryChanges are changes of a working memory.
type WorkingMemoryChanges struct {
	Changes []WorkingMemoryChange `json:"changes" doc:"In the order in which they are made."`
	VersionExpected
}

// VersionExpected is the version that a change expects the working memory to have.
type VersionExpected struct {
	ExpectedVersion rest.Opt[int] `json:"expected_version,omitzero" doc:"Of the working memory, as in If-Match."`
}

// WorkingMemoryChange is a change of one entry.
type WorkingMemoryChange struct {
	Field    string           `json:"field" doc:"task, next and last_edit have one entry, others several." example:"task"`
	Action   rest.Opt[string] `json:"action,omitzero" doc:"add, set or remove; else set for one entry, add for several."`
	Text     rest.Opt[string] `json:"text,omitzero" doc:"The entry, in one line; last_edit is a diff." example:"Ship it"`
	Old      rest.Opt[string] `json:"old,omitzero" doc:"The entry of a list that set replaces."`
	Evidence rest.Opt[string] `json:"evidence,omitzero" doc:"A position, a file's name, or a value of a call's arguments."`
}

// versionOf returns the version that a request expects; nil accepts any.
func (v VersionExpected) versionOf(header letta.IfMatch) (*int, error) {
	x, err := letta.Precondition{ExpectedVersion: v.ExpectedVersion}.Expected(header)
	return x.Version, err
}

// target returns what an operator's change applies to.
func (s *Server) target(ctx context.Context, place OfWorkingMemory, v VersionExpected, header letta.IfMatch) (
	working.Target, error) {
	c, err := s.named(ctx, place.OfConversation, place.AgentID)
	if err != nil {
		return working.Target{}, err
	}
	version, err := v.versionOf(header)
	if err != nil {
		return working.Target{}, err
	}
	window, err := s.Agents.WindowIn(ctx, rest.Org(ctx), c)
	return working.Target{AgentID: c.AgentID, Conversation: c.ID, Expected: version,
		Author: working.Author{Kind: working.ByOperator}, Window: window}, err
}

// withMemory adds the stored working memory to the error of a change that expected another version.
func withMemory(err error) error {
	if mismatch, ok := errors.AsType[*working.MismatchError](err); ok {
		return rest.Conflict(mismatch.Error(), mismatch.Current)
	}
	return err
}

func (s *Server) workingMemory(ctx context.Context, input *OfWorkingMemory) (working.Memory, error) {
	c, err := s.named(ctx, input.OfConversation, input.AgentID)
	if err != nil {
		return working.Memory{}, err
	}
	if err := s.Working.Refresh(ctx, rest.Org(ctx), c); err != nil {
		return working.Memory{}, err
	}
	return s.Working.Memory(ctx, rest.Org(ctx), c)
}

func (s *Server) updateWorkingMemory(ctx context.Context, input *struct {
	OfWorkingMemory
	letta.IfMatch
	Body WorkingMemoryChanges
}) (working.Memory, error) {
	t, err := s.target(ctx, input.OfWorkingMemory, input.Body.VersionExpected, input.IfMatch)
	if err != nil {
		return working.Memory{}, err
	}
	changes := rest.Each(input.Body.Changes, func(c WorkingMemoryChange) working.Change {
		return working.Change{Field: working.Field(c.Field), Action: c.Action.Value, Text: c.Text.Value, Old: c.Old.Value,
			Evidence: c.Evidence.Value}
	})
	m, err := s.Working.Change(ctx, rest.Org(ctx), t, changes)
	return m, withMemory(err)
}

func (s *Server) workingMemoryVersions(ctx context.Context, input *struct {
	OfWorkingMemory
	Before int `query:"before" minimum:"1" doc:"Versions before this one."`
	Limit  int `query:"limit" minimum:"1" maximum:"1000" default:"50"`
}) ([]working.RecordVersion, error) {
	c, err := s.named(ctx, input.OfConversation, input.AgentID)
	if err != nil {
		return nil, err
	}
	return s.Working.Versions(ctx, rest.Org(ctx), c, input.Before, input.Limit)
}

// OfWorkingMemoryVersion holds the parameters of operations on a version of a working memory.
type OfWorkingMemoryVersion struct {
	OfWorkingMemory
	Version int `path:"version" minimum:"1"`
}

func (s *Server) workingMemoryVersion(ctx context.Context, input *OfWorkingMemoryVersion) (working.RecordVersion,
	error) {
	c, err := s.named(ctx, input.OfConversation, input.AgentID)
	if err != nil {
		return working.RecordVersion{}, err
	}
	return s.Working.Version(ctx, rest.Org(ctx), c, input.Version)
}

func (s *Server) restoreWorkingMemory(ctx context.Context, input *struct {
	OfWorkingMemoryVersion
	letta.IfMatch
	Body VersionExpected
}) (working.Memory, error) {
	t, err := s.target(ctx, input.OfWorkingMemory, input.Body, input.IfMatch)
	if err != nil {
		return working.Memory{}, err
	}
	m, err := s.Working.Restore(ctx, rest.Org(ctx), t, input.OfWorkingMemoryVersion.Version)
	return m, withMemory(err)
}

func (s *Server) workingMemoryDiff(ctx context.Context, input *struct {
	OfWorkingMemory
	From int `query:"from" minimum:"0" required:"true"`
	To   int `query:"to" minimum:"0" required:"true"`
}) (letta.BlockDiff, error) {
	c, err := s.named(ctx, input.OfConversation, input.AgentID)
	if err != nil {
		return letta.BlockDiff{}, err
	}
	text, err := s.Working.Diff(ctx, rest.Org(ctx), c, input.From, input.To)
	return letta.BlockDiff{From: input.From, To: input.To, Diff: text}, err
}

func (s *Server) workingMemoryChurn(ctx context.Context, input *struct {
	OfWorkingMemory
	Turns int `query:"turns" minimum:"1" maximum:"100" default:"10" doc:"The newest that are compared."`
}) (working.Churn, error) {
	c, err := s.named(ctx, input.OfConversation, input.AgentID)
	if err != nil {
		return working.Churn{}, err
	}
	return s.Working.Churn(ctx, rest.Org(ctx), c, input.Turns)
}
