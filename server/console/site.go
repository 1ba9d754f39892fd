package console

import (
	"net/http"
	"time"
)

// base is the path of the console. All pages are below it.
const base = "/console/"

// Console serves the pages.
type Console struct {
	api      http.Handler // the REST API
	mux      *http.ServeMux
	pageWait time.Duration
}

// policy is the Content-Security-Policy of pages: they load only what the server itself has, and run no inline scripts.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
