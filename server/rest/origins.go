package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// Origins are the origins whose pages may call the API from a browser, as browsers write them: https://example.com,
// http://localhost:3000. AnyOrigin stands for all. Without any, browsers let pages of this server alone call it.
type Origins []string

// AnyOrigin are the pages of every site. They need a key.
const AnyOrigin = "*"

// preflightAge is how many seconds a browser may remember that it may call an operation.
const preflightAge = 600

// exposed are the headers of answers that pages may read, besides those that browsers always show.
var exposed = []string{"X-Request-Id", "Retry-After", "X-Should-Retry", "Content-Disposition", "Location",
	WarningsHeader, "X-Upload-Result", "Mcp-Session-Id", "Mcp-Protocol-Version", "Www-Authenticate"}

// Check returns an error that names an origin which no browser sends.
func (o Origins) Check() error {
	for _, origin := range o {
		u, err := url.Parse(origin)
		if origin != AnyOrigin && (err != nil || u.Scheme == "" || u.Host == "" || origin != u.Scheme+"://"+u.Host ||
			strings.Contains(u.Host, "*")) {
			return fmt.Errorf("%q is no origin: write https://example.com, with the port if it is not the scheme's and "+
				"without a path, or * for every site", origin)
		}
	}
	return nil
}

// Name reports whether an origin is one of those named.
func (o Origins) Name(origin string) bool {
	return slices.ContainsFunc(o, func(named string) bool { return strings.EqualFold(named, origin) })
}

// Allow reports whether the pages of an origin may call the API with a key.
func (o Origins) Allow(origin string) bool { return slices.Contains(o, AnyOrigin) || o.Name(origin) }

// answerBrowsers tells browsers which pages may call the API and read its answers. It answers preflights, which have no
// key.
func (o Origins) answerBrowsers() echo.MiddlewareFunc {
	cors := middleware.CORSWithConfig(middleware.CORSConfig{
		AllowOriginFunc: func(origin string) (bool, error) { return o.Allow(origin), nil },
		AllowMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch,
			http.MethodDelete},
		ExposeHeaders: exposed, MaxAge: preflightAge})
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		handle := cors(next)
		return func(c echo.Context) error {
			h := c.Request().Header
			if h.Get("Access-Control-Request-Private-Network") == "true" && o.Allow(h.Get(echo.HeaderOrigin)) {
				c.Response().Header().Set("Access-Control-Allow-Private-Network", "true")
			}
			return handle(c)
		}
	}
}
