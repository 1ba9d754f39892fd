package server

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/server/rest"
)

// HandlerWithoutKeys returns the API of a server that requires no keys.
func HandlerWithoutKeys(s *Server) http.Handler {
	_, h := withoutKeys(s)
	return h
}

func withoutKeys(s *Server) (*rest.API, http.Handler) {
	a := rest.New(rest.Config{Title: "Loci", Version: s.Version, Log: s.Log})
	s.routes(a)
	return a, a.Handler()
}

// Routes returns all routes of the API.
func Routes(s *Server) []rest.Route {
	a, _ := withoutKeys(s)
	return a.Routes()
}

// Bounded returns the context of the next part of a request that waits for the database.
func (s *Server) Bounded(c echo.Context) (context.Context, context.CancelFunc) { return s.bounded(c) }
