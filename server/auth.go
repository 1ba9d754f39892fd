package server

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
)

// authenticate finds a request's organization by its key. As long as there is no key in the database, every request is the default
// organization's; a server that listens on loopback then refuses what a web page of another site sends through the browser
// of somebody on this machine: requests to a host name that is not this machine's (DNS rebinding), or from another site's page.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if isOpen(c.Path()) {
			return next(c)
		}
		org, err := s.organization(c.Request())
		if err != nil {
			return err
		}
		rest.SetOrg(c, org)
		return next(c)
	}
}

// isOpen names the routes that need no key.
func isOpen(route string) bool { return route == pathHealth || route == pathReady }

func (s *Server) organization(r *http.Request) (db.Org, error) {
	ctx, cancel := context.WithTimeout(r.Context(), cmp.Or(s.Patience, rest.DefaultTimeout))
	defer cancel()
	if secret := secretOf(r); secret != "" {
		org, err := s.Keys.Lookup(ctx, secret)
		if !errors.Is(err, db.ErrNotFound) {
			return org, err
		}
	}
	if !s.Loopback {
		return 0, rest.ErrUnauthorized
	}
	org, err := s.Keys.OpenOrg(ctx)
	if errors.Is(err, db.ErrNotFound) {
		return 0, rest.ErrUnauthorized
	}
	if err != nil {
		return 0, err
	}
	if !isLocal(r.Host) {
		return 0, rest.Forbidden("Without an API key this server answers only to localhost, not to " + r.Host +
			": use http://127.0.0.1, or create a key with 'loci keys create'")
	}
	if origin := r.Header.Get("Origin"); origin != "" && !isLocalOrigin(origin) {
		return 0, rest.Forbidden("Without an API key this server refuses requests from the pages of " + origin +
			": create a key with 'loci keys create'")
	}
	return org, nil
}

// secretOf is the key that a request carries, as a bearer token or the way Letta's self-hosted servers take their password.
func secretOf(r *http.Request) string {
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	secret, _ := strings.CutPrefix(r.Header.Get("X-BARE-PASSWORD"), "password ")
	return secret
}

// isLocal reports whether a host, with or without a port, is this machine by name or by address.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func isLocalOrigin(origin string) bool {
	u, err := url.Parse(origin)
	return err == nil && isLocal(u.Host)
}
