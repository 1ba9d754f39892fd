package console

import (
	"net/http"
	"time"
)

// base is the path below which the pages are.
const base = "/console/"

// Console is the pages.
type Console struct {
	api      http.Handler // the REST API
	mux      *http.ServeMux
	pageWait time.Duration
}

// policy lets pages load what the server itself has, and run no script that is written into a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
