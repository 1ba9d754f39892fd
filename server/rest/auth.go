package rest

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
)

// Keys finds the organization that a request is served for. Both functions return db.ErrNotFound if they find none.
type Keys struct {
	// Org returns the organization of the key with a secret, and whether it is a key of the operator.
	Org     func(ctx context.Context, secret string) (org db.Org, operator bool, err error)
	OpenOrg func(ctx context.Context) (db.Org, error) // of requests without a key; nil refuses them
}

// authenticate finds a request's organization by its key. A request without a key that the server knows belongs to the
// open organization, if there is one. The server then refuses what a web page of another site sends through a browser
// on this machine: a request to a host name that is not this machine's (DNS rebinding), or from another origin's page.
func (a *API) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if a.public[c.Path()] {
			return next(c)
		}
		r := c.Request()
		org, operator, err := a.organization(r)
		if err != nil {
			return err
		}
		c.SetRequest(r.WithContext(db.WithOrg(r.Context(), org)))
		setContext(c, keyOperator, operator)
		setContext(c, keyRecheck, func() error {
			_, _, err := a.organization(r)
			return err
		})
		return next(c)
	}
}

// organization returns the organization that a request is served for, and whether the operator sent it: with a key of
// theirs, or without one to a server that needs none.
func (a *API) organization(r *http.Request) (org db.Org, operator bool, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), a.Timeout)
	defer cancel()
	if secret := secretOf(r); secret != "" {
		org, operator, err = a.Keys.Org(ctx, secret)
		if !errors.Is(err, db.ErrNotFound) {
			return org, operator, err
		}
	}
	if a.Keys.OpenOrg == nil {
		return 0, false, ErrUnauthorized
	}
	org, err = a.Keys.OpenOrg(ctx)
	if errors.Is(err, db.ErrNotFound) {
		return 0, false, ErrUnauthorized
	}
	if err != nil {
		return 0, false, err
	}
	return org, true, refuseOtherSites(r)
}

// refuseOtherSites returns an error unless a request names this machine, and comes from no other origin's page, which
// another port of this machine is too, and through no proxy, which other machines may reach.
func refuseOtherSites(r *http.Request) error {
	if !isLocal(r.Host) {
		return Forbidden("Without an API key this server answers only to localhost, not to " + r.Host +
			": use http://127.0.0.1, or create a key with 'loci keys create'")
	}
	origin := r.Header.Get("Origin")
	if u, err := url.Parse(origin); origin != "" && (err != nil || !strings.EqualFold(u.Host, r.Host)) {
		return Forbidden("Without an API key this server refuses requests from the pages of " + origin +
			": create a key with 'loci keys create'")
	}
	for _, from := range r.Header.Values("Sec-Fetch-Site") {
		if !strings.EqualFold(from, "same-origin") && !strings.EqualFold(from, "none") {
			return Forbidden("Without an API key this server refuses requests from the pages of other sites and ports (" +
				from + "): create a key with 'loci keys create'")
		}
	}
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded") || slices.Contains(proxyHeaders, name) {
			return Forbidden("Without an API key this server refuses requests that a proxy forwards (" + name +
				"): create a key with 'loci keys create'")
		}
	}
	return nil
}

// proxyHeaders are the headers that proxies add, apart from those that begin with X-Forwarded.
var proxyHeaders = []string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Original-Forwarded-For",
	"X-Cluster-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Fastly-Client-Ip"}

// secretOf returns the key that a request carries: a bearer token, or the password of Letta's self-hosted servers.
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
