package gateway

import (
	"io"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/server/rest"
)

// maxRequestBytes bounds a request with messages.
const maxRequestBytes = 64 << 20

var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Routes registers the gateway's routes: the two providers' paths, and the same below an agent and below a key.
func (g *Gateway) Routes() {
	public := g.API.For(rest.Public)
	waits := rest.OnlyWaits(func(*http.Request) bool { return true })
	for _, prefix := range []string{"", "/agents/{agent_id}", "/k/{key}", "/k/{key}/agents/{agent_id}"} {
		for _, method := range methods {
			public.Hidden(method, prefix+"/openai/v1/*", g.serveOpenAI, rest.Own, waits)
			public.Hidden(method, prefix+"/anthropic/v1/*", g.serveAnthropic, rest.Own, waits)
		}
	}
}

func (g *Gateway) serveOpenAI(c echo.Context) error {
	d := map[string]*dialect{"POST chat/completions": chatDialect, "POST responses": responsesDialect}
	return g.serve(c, model.FormatOpenAI, d)
}

func (g *Gateway) serveAnthropic(c echo.Context) error {
	return g.serve(c, model.FormatAnthropic, map[string]*dialect{"POST messages": anthropicDialect})
}

// paid are the requests that the server's own credential pays for, besides those with messages.
var paid = []string{"GET models", "POST embeddings", "POST messages/count_tokens"}

// serve serves a request in the form of a provider. with are the requests with messages.
func (g *Gateway) serve(c echo.Context, format string, with map[string]*dialect) error {
	err := g.answer(c, format, with)
	if err == nil || c.Response().Committed {
		return err
	}
	return writeError(c, format, rest.ProblemOf(err))
}

func (g *Gateway) answer(c echo.Context, format string, with map[string]*dialect) error {
	path := strings.Trim(c.Param("*"), "/")
	cred := credentialsOf(c.Request(), c.Param("key"))
	done, away, err := g.admit(c, &cred)
	defer done()
	if err != nil {
		return err
	}
	org := rest.Org(c.Request().Context())
	if !g.streams.TryTake(org, 1, 0) {
		return rest.StatusProblem(http.StatusTooManyRequests, "Too many requests are at providers; try again in a moment")
	}
	defer g.streams.Give(org, 1)
	d := with[c.Request().Method+" "+path]
	if d == nil {
		return g.passOn(c, format, path, cred)
	}
	raw, release, err := g.API.Hold(c, maxRequestBytes)
	defer release()
	if err != nil {
		return err
	}
	x := &exchange{Gateway: g, c: c, dialect: d, cred: cred, away: away}
	return x.converse(path, raw)
}

// passOn passes a request without messages on.
func (g *Gateway) passOn(c echo.Context, format, path string, cred credentials) error {
	r := c.Request()
	if !cred.own && !isPaid(r.Method+" "+path) {
		return rest.Forbidden(r.Method + " " + db.Short(path) + " is passed on only with a credential of your provider: " +
			"send it in its usual header, and the key of this server in " + keyHeader)
	}
	u, _, err := g.chosen(r, format, "", credentials{own: true})
	if err != nil {
		return err
	}
	answer, err := g.send(r.Context(), r, passing{upstream: u, path: path, cred: cred, body: r.Body, bytes: r.ContentLength})
	if err != nil {
		return unreachable(r.Context(), u, err)
	}
	defer answer.Body.Close()
	w := rest.Answer(c)
	answerHeader(w.Header(), answer)
	w.WriteHeader(answer.StatusCode)
	if _, err := io.Copy(flusher{w}, answer.Body); err != nil {
		panic(http.ErrAbortHandler) // the client sees that the answer is not whole
	}
	return nil
}

func isPaid(request string) bool {
	for _, p := range paid {
		if request == p || strings.HasPrefix(request, p+"/") && p == "GET models" {
			return true
		}
	}
	return false
}

// writeError answers with a problem in the form of the provider's errors.
func writeError(c echo.Context, format string, p *rest.Problem) error {
	for name, values := range p.GetHeaders() {
		c.Response().Header()[name] = values
	}
	kinds := map[int]string{http.StatusUnauthorized: "authentication_error", http.StatusForbidden: "permission_error",
		http.StatusNotFound: "not_found_error", http.StatusTooManyRequests: "rate_limit_error",
		http.StatusRequestEntityTooLarge: "request_too_large"}
	kind := kinds[p.GetStatus()]
	switch {
	case kind == "" && p.GetStatus() >= http.StatusInternalServerError:
		kind = "api_error"
	case kind == "":
		kind = "invalid_request_error"
	}
	if format == model.FormatAnthropic {
		return c.JSON(p.GetStatus(), map[string]any{"type": "error",
			"error": map[string]string{"type": kind, "message": p.Error()}})
	}
	return c.JSON(p.GetStatus(), map[string]any{"error": map[string]any{"message": p.Error(), "type": kind, "param": nil,
		"code": nil}})
}
