package server

import (
	"context"
	"errors"

	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// showPassages returns passages in Letta's shape. It adds their vectors if the request asks for them.
func (s *Server) showPassages(ctx context.Context, asked letta.WithEmbeddings, list ...archival.Passage) (
	shown []letta.ArchivalPassage, err error) {
	shown = rest.Each(list, letta.PassageOf)
	if !asked.Shows() {
		return shown, nil
	}
	vectors, err := s.Archival.Vectors(ctx, rest.Org(ctx), list...)
	for i, p := range list {
		shown[i].Embedding = vectors[p.Key]
	}
	return shown, err
}

// patchedPassages is the path, up to the passage's id, for changing a passage of an archive. The path leads through an
// agent that has the archive.
//
//nolint:gosec // no credentials
const patchedPassages = "/v1/agents/{agent_id}/archival-memory/"

// withPassage adds the stored passage to an error that says the passage is already superseded.
func withPassage(err error) error {
	if superseded, ok := errors.AsType[*archival.SupersededError](err); ok {
		return rest.Conflict(superseded.Error(), letta.PassageOf(superseded.Current))
	}
	return err
}
