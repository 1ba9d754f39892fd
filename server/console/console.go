// Package console serves the pages on which people see and run a server. A page asks the REST API for all that it shows
// and changes, with the key of the person who is signed in: it shows and does what that key may, and nothing else.
//
// Each file uses those that are named before it:
//   - what all pages share: site.go functions.go navigation.go api.go render.go session.go filters.go diff.go
//   - pages of agents: blocks.go agent.go agents.go agentchoice.go history.go events.go prompt.go runs.go
//   - pages of files and memory: sendfiles.go chunks.go files.go archival.go search.go
//   - pages of the server: backgroundjobs.go overview.go organizations.go admin.go policies.go settings.go
//   - all of them: console.go
package console

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"time"
)

// New returns the pages, which ask an API. A page waits for its cards for a while, DefaultPageWait if 0; the browser
// asks for those that take longer.
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

// routes are the pages by method and path below base. A path that ends in {$} is exact.
func (c *Console) routes() []map[string]handler {
	return []map[string]handler{overviewRoutes(), agentRoutes(), blockRoutes(), historyRoutes(), promptRoutes(),
		eventRoutes(), fileRoutes(), searchRoutes(), archivalRoutes(), runRoutes(), adminRoutes(), organizationRoutes(),
		policyRoutes(), settingRoutes()}
}

// Routes lists the pages and the changes that they make, each as a method and a path with {names}, in order. They are
// for those whom the API knows.
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

// Owns reports whether a request is for a page and not for the API: one to read the root, or anything below /console/.
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
