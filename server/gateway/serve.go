package gateway

import (
	"context"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/recall/chat"
	"github.com/loci-memory/loci/server/rest"
)

// maxRequestBytes bounds a request with messages.
const maxRequestBytes = 64 << 20

// withMessages are the dialects of requests with messages, by their format, method and path.
var withMessages = map[string]*dialect{
	"openai POST chat/completions": chatDialect,
	"openai POST responses":        responsesDialect,
	"anthropic POST messages":      anthropicDialect,
}

// paid are the requests that the server's own credential pays for, besides those with messages.
var paid = []string{"GET models", "POST messages/count_tokens"}

// Serve serves a call. It panics with http.ErrAbortHandler if an answer breaks off.
func (g *Gateway) Serve(c Call) {
	if err := g.serve(&c); err != nil {
		writeError(c.Answer, c.Format, rest.ProblemOf(err))
	}
}

// serve returns an error only if no answer has begun.
func (g *Gateway) serve(c *Call) error {
	c.Path = strings.Trim(c.Path, "/")
	for segment := range strings.SplitSeq(c.Path, "/") {
		if segment == "." || segment == ".." { // a provider may read them as another path
			return rest.Malformed("path: it has the segment " + segment)
		}
	}
	cred := credentialsOf(c.Request, c.Key)
	done, away, err := g.admit(c, &cred)
	defer done()
	if err != nil {
		return err
	}
	org := rest.Org(c.Request.Context())
	if !g.streams.TryTake(org, 1, 0) {
		return rest.StatusProblem(http.StatusTooManyRequests, "Too many requests are at providers; try again in a moment")
	}
	defer g.streams.Give(org, 1)
	d := withMessages[c.Format+" "+c.Request.Method+" "+c.Path]
	if d == nil && !cred.own && c.Format == OpenAI && c.Request.Method+" "+c.Path == "POST embeddings" {
		return g.embed(c)
	}
	if d == nil {
		return g.passOn(c, cred)
	}
	raw, release, err := c.Hold(maxRequestBytes)
	defer release()
	if err != nil {
		return err
	}
	x := &exchange{Gateway: g, Call: c, dialect: d, cred: cred, away: away}
	return x.converse(raw)
}

// embed answers with vectors of this server.
func (g *Gateway) embed(c *Call) error {
	raw, release, err := c.Hold(maxRequestBytes)
	defer release()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), embedTimeout)
	defer cancel()
	answer, err := g.Embed(ctx, raw)
	if err != nil {
		return err
	}
	writeJSON(c.Answer, http.StatusOK, answer)
	return nil
}

// embedTimeout is long enough for a slow processor to embed a whole request.
const embedTimeout = 5 * time.Minute

// passOn passes a request without messages on.
func (g *Gateway) passOn(c *Call, cred credentials) error {
	r := c.Request
	if !cred.own && !isPaid(r.Method+" "+c.Path) {
		return rest.Forbidden(r.Method + " " + db.Short(c.Path) + " is passed on only with a credential of your provider: " +
			"send it in its usual header, and the key of this server in " + keyHeader)
	}
	u, _, err := g.chosen(r, c.Format, "", credentials{own: true})
	if err != nil {
		return err
	}
	_, written, _ := strings.Cut(r.URL.EscapedPath(), "/"+c.Format+"/v1/")
	answer, err := g.send(r.Context(), r, passing{upstream: u, path: written, cred: cred, body: r.Body,
		bytes: r.ContentLength})
	if err != nil {
		return unreachable(r.Context(), u, err)
	}
	defer answer.Body.Close()
	answerHeader(c.Answer.Header(), answer)
	c.Answer.WriteHeader(answer.StatusCode)
	if _, err := io.Copy(flusher{c.Answer}, answer.Body); err != nil {
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
func writeError(w http.ResponseWriter, format string, p *rest.Problem) {
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
	body := map[string]any{"error": map[string]any{"message": p.Error(), "type": kind, "param": nil, "code": nil}}
	if format == model.FormatAnthropic {
		body = map[string]any{"type": "error", "error": map[string]string{"type": kind, "message": p.Error()}}
	}
	maps.Copy(w.Header(), p.GetHeaders())
	writeJSON(w, p.GetStatus(), body)
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	text := chat.Encode(body)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(text)))
	w.WriteHeader(status)
	_, _ = w.Write(text) // the client may be gone
}
