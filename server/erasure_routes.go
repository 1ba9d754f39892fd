package server

import (
	"context"

	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/tenant/erase"
)

func (s *Server) erasureRoutes(a *rest.API) {
	const path = "/v1/erasures"
	rest.Post(a.For(rest.Admin), path,
		"create_erasure: Erase texts, or a message, from all that the organization stores. It cannot be undone.",
		s.createErasure, rest.Own, rest.Exact, rest.Slow(modelTimeout))
	rest.Post(a.For(rest.Admin), path+"/preview",
		"preview_erasure: Count the occurrences of texts in all that the organization stores. Nothing is changed; after an "+
			"erasure it is the check that nothing is left.",
		s.previewErasure, rest.Own, rest.Exact, rest.Slow(modelTimeout))
	rest.Get(a.For(rest.Admin), path, "list_erasures: List erasures.", s.listErasures, rest.Own)
	rest.Get(a.For(rest.Admin), path+"/{erasure_id}", "get_erasure: Get an erasure with its report.", s.getErasure,
		rest.Own)
	rest.Post(a.For(rest.Admin), path+"/{erasure_id}/approve",
		"approve_erasure: Approve an erasure that an agent asks for. It cannot be undone.", s.approveErasure, rest.Own,
		rest.Slow(modelTimeout))
	rest.Post(a.For(rest.Admin), path+"/{erasure_id}/deny", "deny_erasure: Deny an erasure that an agent asks for.",
		s.denyErasure, rest.Own)
}

// ErasedTexts selects the texts to erase.
type ErasedTexts struct {
	Texts []string `json:"texts,omitempty" maxItems:"50" doc:"With all spellings that are meant." example:"[\"Ann Lee\"]"`

	MessageID  rest.Opt[string] `json:"message_id,omitzero" doc:"Of a message, in place of texts."`
	WholeWords rest.Opt[bool]   `json:"whole_words,omitzero" doc:"An occurrence begins and ends with a word."`
}

// NewErasure is a request for an erasure.
type NewErasure struct {
	ErasedTexts
	Reason rest.Opt[string] `json:"reason,omitzero" doc:"Why; it is kept without the texts." example:"\"asked to\""`
}

func (b ErasedTexts) request() erase.Request {
	return erase.Request{Texts: b.Texts, MessageID: b.MessageID.Value, WholeWords: b.WholeWords.Value}
}

func (s *Server) createErasure(ctx context.Context, input *struct{ Body NewErasure }) (erase.Erasure, error) {
	r := input.Body.request()
	r.Reason, r.By = input.Body.Reason.Value, erase.Requester{Key: rest.KeyOf(ctx)}
	return s.Erasures.Create(ctx, rest.Org(ctx), r)
}

func (s *Server) previewErasure(ctx context.Context, input *struct{ Body ErasedTexts }) (erase.Report, error) {
	return s.Erasures.Preview(ctx, rest.Org(ctx), input.Body.request())
}

func (s *Server) listErasures(ctx context.Context, input *rest.Paging) ([]erase.Erasure, error) {
	return s.Erasures.List(ctx, rest.Org(ctx), input.Page(50, rest.NewestFirst))
}

// OfErasure holds the path parameter of operations on an erasure.
type OfErasure struct {
	ErasureID rest.ErasureID `path:"erasure_id"`
}

func (s *Server) getErasure(ctx context.Context, input *OfErasure) (erase.Erasure, error) {
	return s.Erasures.Erasure(ctx, rest.Org(ctx), string(input.ErasureID))
}

func (s *Server) approveErasure(ctx context.Context, input *OfErasure) (erase.Erasure, error) {
	return s.decide(ctx, input, true)
}

func (s *Server) denyErasure(ctx context.Context, input *OfErasure) (erase.Erasure, error) {
	return s.decide(ctx, input, false)
}

func (s *Server) decide(ctx context.Context, input *OfErasure, approve bool) (erase.Erasure, error) {
	return s.Erasures.Decide(ctx, rest.Org(ctx), string(input.ErasureID), approve, erase.Requester{Key: rest.KeyOf(ctx)})
}
