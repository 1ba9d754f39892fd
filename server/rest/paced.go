package rest

import (
	"fmt"
	"net/http"
	"time"
)

// paced bounds how long the bodies of requests to next may take to arrive, whoever sends them, and whether or not next
// reads them.
func (a *API) paced(next http.Handler) http.Handler { return pacedBy(a.Pace, next) }

// ForPages serves pages. Anybody may send a short form, which must arrive within formTime and does not count among the
// API's bodies. A longer body is accepted only from a sender that the pages know; time and number of those bodies are
// bounded as in the API.
func (a *API) ForPages(pages Pages) http.Handler {
	form := a.Pace.WithDefaults()
	form.Interval, form.Total = formTime, formTime
	short, long := pacedBy(form, pages), pacedBy(a.Pace, a.counted(pages))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.ContentLength >= 0 && r.ContentLength <= maxFormBytes:
			short.ServeHTTP(w, r)
		case pages.Knows(r):
			long.ServeHTTP(w, r)
		default:
			http.Error(w, fmt.Sprintf("Sign in before you send more than %d bytes.", maxFormBytes),
				http.StatusRequestEntityTooLarge)
		}
	})
}

// counted makes the bodies of requests for pages count in the same limits as the API's bodies.
func (a *API) counted(pages http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := a.arriving.body(r.Body, sender{key: "pages"})
		if err != nil {
			http.Error(w, err.Error(), http.StatusTooManyRequests)
			return
		}
		defer body.arrived()
		r.Body = body
		pages.ServeHTTP(w, r)
	})
}

const (
	maxFormBytes = 64 << 10         // of a form that anybody may send
	formTime     = 10 * time.Second // for the whole form
)

// Pages are web pages outside of the API, such as the console.
type Pages interface {
	http.Handler
	// Knows reports whether the sender of a request may see the pages.
	Knows(r *http.Request) bool
}
