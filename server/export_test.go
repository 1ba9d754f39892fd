package server

import (
	"net/http"

	"github.com/loci-memory/loci/server/rest"
)

// HandlerWithoutKeys returns the API of a server that asks for no keys.
func HandlerWithoutKeys(s *Server) http.Handler {
	a := rest.New(rest.Config{Title: "Loci", Version: s.Version, Log: s.Log})
	s.routes(a)
	return a.Handler()
}
