package server

import (
	"context"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/embed/endpoint"
	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) settingRoutes(a *rest.API) {
	operator := a.For(rest.Operator)
	rest.Get(operator, "/v1/admin/settings",
		"list_settings: List the settings that the server runs with. Each says where its value is from; secrets are "+
			"hidden. Only the operator may.", s.listSettings, rest.Own)
	rest.Post(operator, "/v1/admin/settings/check",
		"check_settings: Examine what the server needs. As 'loci doctor' does, with the server's settings: its database, "+
			"its disk and its endpoints; nothing is changed. Only the operator may.",
		func(ctx context.Context, _ *struct{}) ([]db.Finding, error) { return s.Examine(ctx), nil }, rest.Own)
	rest.Post(operator, "/v1/admin/endpoints/embeddings/check",
		"check_embeddings: Ask the embedding model for a vector. As the server does, with its settings; nothing is "+
			"changed. Only the operator may.", examination(s.ExamineEmbeddings), rest.Own)
	rest.Post(operator, "/v1/admin/endpoints/model/check",
		"check_model: Ask the endpoint of the language model which models it has. As the server does, with its settings; "+
			"nothing is changed. Only the operator may.", examination(s.ExamineModel), rest.Own)
}

func (s *Server) reembeddingRoutes(a *rest.API) {
	const path = "/v1/admin/reembedding"
	operator := a.For(rest.Operator)
	rest.Get(operator, path,
		"get_reembedding: Say how far the vectors of the next embedding model are. Only the operator may.",
		func(ctx context.Context, _ *struct{}) (endpoint.ReembedProgress, error) {
			return s.Reembed.Progress(ctx)
		}, rest.Own)
	rest.Post(operator, path,
		"run_reembedding: Make the vectors of the model of LOCI_EMBEDDING_NEXT. They are made beside those in use; when "+
			"all are there, searches switch to them. After a cancellation it goes on where it was. Only the operator may.",
		func(ctx context.Context, _ *struct{}) (endpoint.ReembedProgress, error) { return s.Reembed.Start(ctx) }, rest.Own)
	rest.Delete(operator, path,
		"cancel_reembedding: Make no more vectors of the next embedding model. Searches stay as they are; the vectors that "+
			"were made are kept for a week. Only the operator may.",
		func(ctx context.Context, _ *struct{}) (endpoint.ReembedProgress, error) { return s.Reembed.Cancel(ctx) }, rest.Own)
}

// RunningSetting is a setting of the server, and the value that the database has instead.
type RunningSetting struct {
	Setting
	Stored string `json:"stored" doc:"For the caller's organization, else for the server, which wins; empty for nothing."`
}

// policySetting is the setting that an organization may replace by a stored policy.
const policySetting = "LOCI_POLICY"

func (s *Server) listSettings(ctx context.Context, _ *struct{}) ([]RunningSetting, error) {
	stored, err := s.Agents.OrganizationPolicy(ctx, rest.Org(ctx))
	if err == nil && stored == nil {
		stored, err = s.Agents.ServerPolicy(ctx)
	}
	if err != nil {
		return nil, err
	}
	return rest.Each(s.Settings, func(setting Setting) RunningSetting {
		if setting.Variable != policySetting {
			return RunningSetting{Setting: setting}
		}
		return RunningSetting{Setting: setting, Stored: string(stored)}
	}), nil
}

// examination returns a handler that checks whether an endpoint answers as the server needs.
func examination(ask func(context.Context) db.Finding) rest.Handler[struct{}, db.Finding] {
	return func(ctx context.Context, _ *struct{}) (db.Finding, error) { return ask(ctx), nil }
}
