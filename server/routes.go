package server

import (
	"context"
	"net/http"
	"time"

	"github.com/loci-memory/loci/server/console"
	"github.com/loci-memory/loci/server/letta"
	"github.com/loci-memory/loci/server/rest"
)

// Handler serves the API, with its OpenAPI document at /openapi.json, and the console.
func (s *Server) Handler() http.Handler {
	keys := &rest.Keys{Lookup: s.Keys.Lookup, OpenOrg: s.OpenOrg, AgentOf: s.agentOf, Used: s.Keys.Used,
		Limits: s.KeyLimits, Request: s.countRequest, User: s.userOf, CheckUser: s.checkUser}
	var api *rest.API
	ready := func(ctx context.Context, since time.Time) error {
		_, err := s.checkReady(ctx, api, since)
		return err
	}
	api = rest.New(rest.Config{Ready: ready,
		Title: "Loci", Version: s.Version, Log: s.Log, Timeout: s.RequestTimeout, Keys: keys,
		KeyAge: s.KeyAge, Origins: s.Origins, Pace: rest.BodyPace{Rate: s.MinBodyRate},
		SpoolBytes: max(rest.DefaultSpoolBytes, 4*s.MaxUploadBytes), Observe: s.observe})
	s.routes(api)
	api.Gauges(s.Metrics.Register)
	s.Metrics.Register("messages_in_line", "Messages that wait here for the end of their conversation's run.", nil,
		func() float64 { return float64(s.Loop.InLine()) })
	return withConsole(api, s.PageWait)
}

// withConsole serves the console's pages at / and below /console/, and the API elsewhere. The pages call the API.
// pageWait is as in console.New.
func withConsole(a *rest.API, pageWait time.Duration) http.Handler {
	api := a.Handler()
	console := console.New(api, pageWait)
	pages := a.ForPages(console)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if console.Owns(r) {
			pages.ServeHTTP(w, r)
			return
		}
		api.ServeHTTP(w, r)
	})
}

func (s *Server) routes(a *rest.API) {
	rest.Get(a.For(rest.Public), "/v1/health", "get_health: Check that the server runs.", s.health)
	rest.Get(a.For(rest.Public), "/v1/ready", "get_readiness: Check that the database answers and can store changes.",
		s.ready(a))
	for _, register := range []func(*rest.API){
		s.absentRoutes, s.agentRoutes, s.agentFileRoutes,
		s.archiveRoutes, s.backgroundJobRoutes, s.blockRoutes, s.callerRoutes,
		s.captureRoutes, s.subagentRoutes, s.definitionRoutes, s.compactionRoutes, s.handoverRoutes,
		s.conversationRoutes, s.embeddingRoutes, s.erasureRoutes, s.eventRoutes, s.eventStreamRoutes,
		s.fileStreamRoutes, s.folderRoutes, s.gatewayRoutes,
		s.identityRoutes, s.keyRoutes, s.memoryTreeRoutes, s.memoryFileRoutes, s.memorySearchRoutes, s.messageRoutes,
		s.messageSearchRoutes, s.metricsRoutes,
		s.loopRoutes, s.mcpRoutes, s.modelRoutes, s.openFileRoutes, s.organizationRoutes, s.passageRoutes,
		s.passageBatchRoutes,
		s.policyRoutes, s.previewRoutes, s.promptRoutes, s.quotaRoutes, s.replayRoutes, s.resultRoutes, s.retentionRoutes,
		s.runRoutes,
		s.settingRoutes, s.reembeddingRoutes,
		s.stepRoutes, s.toolRoutes, s.uploadRoutes, s.userMemoryRoutes,
		s.workingMemoryRoutes,
	} {
		register(a)
	}
	var unserved []rest.Unserved
	for _, r := range letta.Routes() {
		unserved = append(unserved, rest.Unserved{Method: r.Method, Path: r.Path, Why: r.WhyNot()})
	}
	a.NotServed(unserved)
}
