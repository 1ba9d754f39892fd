package rest

import (
	"net/http"

	"github.com/labstack/echo/v4"
)

// headAsGet answers a HEAD like the GET of its path; net/http then sends only the headers. Streams have no HEAD unless
// one is registered.
func (a *API) headAsGet(next *echo.Echo) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead && a.answersWhole(r) {
			r = r.WithContext(r.Context())
			r.Method = http.MethodGet
		}
		next.ServeHTTP(w, r)
	})
}

// answersWhole reports whether the GET of a request's path is an operation, no stream, and the path has no HEAD of its
// own.
func (a *API) answersWhole(r *http.Request) bool {
	c := a.echo.AcquireContext()
	defer a.echo.ReleaseContext(c)
	a.echo.Router().Find(http.MethodGet, echo.GetPath(r), c)
	_, own := a.access[c.Path()][http.MethodHead]
	return a.whole[c.Path()] && !own
}
