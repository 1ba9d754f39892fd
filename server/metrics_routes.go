package server

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/server/rest"
)

func (s *Server) metricsRoutes(a *rest.API) {
	handler := s.Metrics.Handler()
	text := map[string]*huma.MediaType{"text/plain": {Schema: &huma.Schema{Type: huma.TypeString}}}
	a.For(rest.Operator).Stream(huma.Operation{Method: http.MethodGet, Path: "/metrics",
		Summary: "get_metrics: Read the server's metrics. They are of all organizations, in Prometheus' text format. Only " +
			"the operator may.",
		Responses: map[string]*huma.Response{"200": {Description: "The metrics.", Content: text}}},
		func(c echo.Context) error {
			handler.ServeHTTP(rest.Answer(c), c.Request())
			return nil
		}, rest.Own)
}

// observe counts an answered request.
func (s *Server) observe(r rest.Served) { s.Metrics.Request(r.Method, r.Route, r.Status, r.Took) }

// MetricsHandler serves the metrics at /metrics without a key. It is for an address that only the operator can reach.
func (s *Server) MetricsHandler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.Metrics.Handler())
	return mux
}
