package rest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

// recheckTimeout bounds the check of the key of an open answer. The answer waits for the check. If the database does
// not answer in this time, the key counts as valid.
const recheckTimeout = 5 * time.Second

// authenticate finds a request's organization by its key. A request without a key belongs to the open organization, if
// the server has one. Such a server refuses requests that a web page of another site sends through a browser on this
// machine: requests to a host name that is not this machine's (DNS rebinding), and requests from the page of another
// origin. Authenticate also refuses what the key may not do, and what exceeds the key's limits.
func (a *API) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if a.isPublic(c.Path()) {
			return next(c)
		}
		done, err := a.admit(c, secretOf(c.Request()), a.Timeout, a.authorize)
		defer done()
		if err != nil {
			return err
		}
		return next(c)
	}
}

// Admit is authenticate for a request of a public route whose handler finds the secret of the key, and what the key may
// do. It waits at most limit for the database. done must be called when the request has been served, also after an
// error.
func (a *API) Admit(c echo.Context, secret string, limit time.Duration) (done func(), err error) {
	return a.admit(c, secret, limit, func(echo.Context, apikey.Key) error { return nil })
}

func (a *API) admit(c echo.Context, secret string, limit time.Duration,
	authorize func(echo.Context, apikey.Key) error) (done func(), err error) {
	done = func() {}
	r, start := c.Request(), time.Now()
	key, err := a.caller(r, secret, limit)
	if err != nil {
		if ProblemOf(err).status < http.StatusInternalServerError {
			a.lookups.refusals.wait(r.Context())
		}
		return done, err
	}
	if key.ID != "" {
		end, err := a.count(r, key)
		if err != nil {
			return done, err
		}
		done = end
	}
	if key, err = a.forUser(c, key); err != nil {
		return done, err
	}
	if err := authorize(c, key); err != nil {
		return done, err
	}
	if a.Keys.Request != nil {
		if err := a.Keys.Request(r.Context(), key); err != nil {
			return done, err
		}
	}
	ctx := db.WithUser(db.WithProvenance(db.WithOrg(r.Context(), key.Org), provenanceOf(c, key)), key.UserKey)
	c.SetRequest(r.WithContext(ctx))
	setContext(c, keyCaller, key)
	setContext(c, keyAuthTook, time.Since(start))
	setContext(c, keyRecheck, func() error {
		ctx, cancel := context.WithTimeout(r.Context(), min(recheckTimeout, a.Timeout))
		defer cancel()
		_, err := a.caller(r.WithContext(ctx), secret, a.Timeout)
		return err
	})
	return done, nil
}

// caller returns the key of a request. A request without one, to a server that needs none, is the operator's.
func (a *API) caller(r *http.Request, secret string, limit time.Duration) (apikey.Key, error) {
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	for _, name := range []string{"Authorization", "X-Bare-Password", "Origin"} {
		if n := len(r.Header.Values(name)); n > 1 {
			return apikey.Key{}, newProblem(codeMalformed, fmt.Sprintf("the request has %d headers %s; send one", n, name))
		}
	}
	refused := errNoKey
	if secret != "" {
		key, err := a.lookups.key(ctx, secret)
		if errors.Is(err, apikey.ErrExpired) {
			return key, expiredKey(key)
		}
		if !errors.Is(err, db.ErrNotFound) {
			return key, err
		}
		refused = errUnknownKey
	}
	if a.Keys.OpenOrg == nil {
		return apikey.Key{}, refused
	}
	org, err := a.lookups.open(ctx)
	if errors.Is(err, db.ErrNotFound) {
		err = refused
	}
	if err != nil {
		return apikey.Key{}, err
	}
	return apikey.Key{Org: org, Operator: true, Scopes: []string{apikey.Admin}}, a.refuseOtherSites(r)
}

// count counts a request of a key, and stores the key's last use now and then. end ends the count.
func (a *API) count(r *http.Request, key apikey.Key) (end func(), err error) {
	end, store, err := a.usage.begin(key, time.Now())
	if store && a.Keys.Used != nil {
		ctx, cancel := context.WithTimeout(r.Context(), a.Timeout)
		defer cancel()
		if err := a.Keys.Used(ctx, key.ID); err != nil { // for example, the database is read-only
			a.Log.DebugContext(ctx, "store the use of a key", "key", key.ID, "error", err)
		}
	}
	return end, err
}

// refuseOtherSites accepts only requests from this machine. It returns an error if the request's host is not local, if
// the request comes from a page of another origin that is not named (another port is another origin), or if a proxy
// forwarded it, because other machines may reach the proxy.
func (a *API) refuseOtherSites(r *http.Request) error {
	if !isLocal(r.Host) {
		return Forbidden("Without an API key this server answers only to localhost, not to " + r.Host +
			": use http://127.0.0.1, or create a key with 'loci keys create'")
	}
	origin := r.Header.Get("Origin")
	named := a.Origins.Name(origin)
	if u, err := url.Parse(origin); origin != "" && !named && (err != nil || !strings.EqualFold(u.Host, r.Host)) {
		return Forbidden("Without an API key this server refuses requests from the pages of " + origin +
			": create a key with 'loci keys create', or name the origin in LOCI_CORS_ORIGINS")
	}
	for _, site := range r.Header.Values("Sec-Fetch-Site") {
		if !named && !strings.EqualFold(site, "same-origin") && !strings.EqualFold(site, "none") {
			return Forbidden("Without an API key this server refuses requests from the pages of other sites and ports (" +
				site + "): create a key with 'loci keys create'")
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

// proxyHeaders are the headers that proxies add, besides those beginning with X-Forwarded.
var proxyHeaders = []string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Original-Forwarded-For",
	"X-Cluster-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Fastly-Client-Ip"}

// secretOf returns the key in a request: a bearer token, or the header X-BARE-PASSWORD, where the word password may
// stand before the key, as with Letta's self-hosted servers.
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
