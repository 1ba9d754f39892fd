package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db/spool"
	"github.com/loci-memory/loci/server/rest"
	"github.com/loci-memory/loci/tenant/erase"
	"github.com/loci-memory/loci/tenant/userdata"
)

// userMemoryRoutes registers what is done with all that is one user's own.
func (s *Server) userMemoryRoutes(a *rest.API) {
	const path = "/v1/identities/{identity_id}/memory"
	rest.Get(a.For(rest.Read), path, "get_identity_memory: List everything that is a user's own, with counts by kind.",
		s.userMemory, rest.Own, rest.Exact)
	a.For(rest.Read).Stream(huma.Operation{Method: http.MethodGet, Path: path + "/export",
		Summary: "export_identity_memory: Export everything that is a user's own into one file. A line of JSON is the " +
			"identity, one item, or a part of a file's text.",
		Parameters: []*huma.Param{rest.IDParam("identity_id", "identity")},
		Responses: map[string]*huma.Response{"200": {Description: "The file.",
			Content: map[string]*huma.MediaType{linesOfJSON: {Schema: &huma.Schema{Type: huma.TypeString}}}}}},
		s.exportUserMemory, rest.Own)
	rest.Patch(a.For(rest.Write), path,
		"update_identity_memory: Correct texts that are a user's own, all or none: of blocks, passages and memory files.",
		s.changeUserMemory, rest.Own, rest.Exact)
	rest.Delete(a.For(rest.Admin), path,
		"delete_identity_memory: Erase everything that is a user's own. It cannot be undone. The answer is an erasure, "+
			"with its report.",
		s.eraseUserMemory, rest.Own, rest.Exact, rest.Slow(modelTimeout))
}

const linesOfJSON = "application/jsonl"

func (s *Server) userData() *userdata.Store {
	return &userdata.Store{DB: s.DB, Recall: s.Recall, Archival: s.Archival, MemoryFiles: s.MemoryFiles}
}

func (s *Server) userMemory(ctx context.Context, input *struct {
	OfIdentity
	Kind  rest.Opt[string] `query:"kind" doc:"Only this kind, such as passage; counts has all of them."`
	Limit int              `query:"limit" default:"50" minimum:"1" maximum:"200" doc:"The most items."`
	After rest.Opt[string] `query:"after" doc:"The next of the page before."`
}) (userdata.UserMemory, error) {
	return s.userData().Memory(ctx, rest.Org(ctx), string(input.IdentityID),
		userdata.Page{Kind: input.Kind.Value, After: input.After.Value, Limit: input.Limit})
}

func (s *Server) exportUserMemory(c echo.Context) error {
	id, err := rest.PathID(c, "identity_id", "identity")
	if err != nil {
		return err
	}
	var file spool.Spool
	defer file.Close()
	ctx, cancel := context.WithTimeout(c.Request().Context(), agentFileTimeout)
	defer cancel()
	if err := s.userData().Export(ctx, rest.Org(ctx), id, &file); err != nil {
		return err
	}
	h := c.Response().Header()
	h.Set(echo.HeaderContentType, linesOfJSON)
	h.Set(echo.HeaderContentDisposition, disposition(id+".jsonl"))
	h.Set(echo.HeaderXContentTypeOptions, "nosniff")
	return rest.ServeContent(c, time.Time{}, file.Reader())
}

// ChangedText is the new text of one of a user's items.
type ChangedText struct {
	ID   string `json:"id" doc:"Of a block, a passage or a memory file of the user's own."`
	Text string `json:"text" doc:"The whole new text."`
}

func (s *Server) changeUserMemory(ctx context.Context, input *struct {
	OfIdentity
	Body struct {
		Changes []ChangedText `json:"changes" minItems:"1" maxItems:"100" doc:"All are made, or none."`
	}
}) ([]userdata.Kept, error) {
	changes := rest.Each(input.Body.Changes, func(c ChangedText) userdata.Change { return userdata.Change(c) })
	return s.userData().Change(ctx, rest.Org(ctx), string(input.IdentityID), changes)
}

func (s *Server) eraseUserMemory(ctx context.Context, input *struct {
	OfIdentity
	Reason rest.Opt[string] `query:"reason" doc:"Why; the report keeps it."`
}) (erase.Erasure, error) {
	return s.Erasures.OfUser(ctx, rest.Org(ctx), string(input.IdentityID), input.Reason.Value,
		erase.Requester{Key: rest.KeyOf(ctx)})
}
