// Package console serves the pages on which people see and run a server. A page reads and changes everything through
// the REST API, with the key of the person who is signed in. So it can show and do only what that key allows. The pages
// are the templates in *.templ; make generate makes *_templ.go of them.
//
// Each file uses those that are named before it:
// - what all pages share: site.go functions.go navigation.go api.go render.go session.go filters.go diff.go
// - pages of agents: blocks.go agent.go agents.go agentchoice.go history.go events.go prompt.go runs.go
// - pages of files and memory: sendfiles.go chunks.go files.go archival.go search.go
// - pages of the server: backgroundjobs.go overview.go organizations.go admin.go policies.go settings.go
// - all of them: console.go
package console

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

// New returns the console. api is the REST API that its pages use. A page waits for its cards for pageWait,
// DefaultPageWait if 0; slower cards are loaded by the browser.
func New(api http.Handler, pageWait time.Duration) *Console {
	c := &Console{api: api, mux: http.NewServeMux(), pageWait: cmp.Or(pageWait, DefaultPageWait)}
	c.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, base, http.StatusSeeOther)
	})
	c.mux.Handle("GET "+base+"static/", static())
	c.mux.HandleFunc("GET "+base+"sign-in", c.signInPage)
	c.mux.HandleFunc("POST "+base+"sign-in", c.signIn)
	c.mux.HandleFunc("POST "+base+"sign-out", c.signOut)
	for _, routes := range c.routes() {
		for pattern, handle := range routes {
			method, path, _ := strings.Cut(pattern, " ")
			c.mux.HandleFunc(method+" "+base+path, c.visited(handle))
		}
	}
	c.mux.HandleFunc("GET "+base, c.visited(func(*visit) error { return errNoPage }))
	return c
}

// routes are the pages by method and path below base. A path that ends in {$} matches exactly.
func (c *Console) routes() []map[string]handler {
	return []map[string]handler{overviewRoutes(), agentRoutes(), blockRoutes(), historyRoutes(), promptRoutes(),
		eventRoutes(), fileRoutes(), searchRoutes(), archivalRoutes(), runRoutes(), adminRoutes(), organizationRoutes(),
		policyRoutes(), settingRoutes()}
}

// Routes lists the pages and their changes, each as a method and a path with {names}, in order. All of them need a
// person who is signed in.
func (c *Console) Routes() (list []string) {
	for _, routes := range c.routes() {
		for pattern := range routes {
			method, path, _ := strings.Cut(pattern, " ")
			list = append(list, method+" "+base+path)
		}
	}
	slices.Sort(list)
	return list
}

// Owns reports whether a request belongs to the console and not to the API: a read of the root, or anything below
// /console/.
func (c *Console) Owns(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	return r.URL.Path == "/" && reads || r.URL.Path+"/" == base && reads || strings.HasPrefix(r.URL.Path, base)
}

// ServeHTTP implements http.Handler.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	c.mux.ServeHTTP(w, r)
}
