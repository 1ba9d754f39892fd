package rest

import (
	"fmt"
	"net/http"
	"time"
)

// paced bounds the time in which the bodies of requests to next come, whoever sends them and whether or not next reads
// them.
func (a *API) paced(next http.Handler) http.Handler { return pacedBy(a.Pace, next) }

// ForPages serves pages. Anybody may send a short form to them, for which formTime is left and which takes no place
// from others. A longer body may come from somebody that the pages know, and its time and number are bounded as those
// of the API are.
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

// counted counts the bodies to pages among those on their way.
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
	formTime     = 10 * time.Second // for all of it
)

// Pages are pages that are no operations of the API.
type Pages interface {
	http.Handler
	// Knows reports whether somebody sent a request who may see pages.
	Knows(r *http.Request) bool
}
