package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/server/rest"
)

// hopByHop are headers of one connection.
var hopByHop = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization",
	"Te", "Trailer", "Transfer-Encoding", "Upgrade"}

// notPassed are further headers of requests that are not passed on: those of the body, which may change, and of this
// server's own sessions.
var notPassed = []string{"Host", "Content-Length", "Accept-Encoding", "Cookie", "X-Bare-Password"}

// passing is a request to a provider.
type passing struct {
	upstream model.Upstream
	path     string // behind /v1/
	cred     credentials
	body     io.Reader
	bytes    int64 // of the body; -1 if unknown
}

// send sends a client's request to its provider.
func (g *Gateway) send(ctx context.Context, from *http.Request, p passing) (*http.Response, error) {
	to := p.upstream.URL + "/" + p.path
	if p.upstream.API == model.FormatAnthropic {
		to = p.upstream.URL + "/v1/" + p.path
	}
	if from.URL.RawQuery != "" {
		to += "?" + from.URL.RawQuery
	}
	r, err := http.NewRequestWithContext(ctx, from.Method, to, p.body) //nolint:gosec // below the operator's own URL
	if err != nil {
		return nil, err
	}
	if r.ContentLength = p.bytes; p.bytes == 0 {
		r.Body = http.NoBody
	}
	copyHeader(r.Header, from.Header, func(name string) bool {
		return strings.HasPrefix(name, headerPrefix) || slices.Contains(notPassed, name)
	})
	for name, values := range r.Header {
		if slices.ContainsFunc(values, isOurs) {
			r.Header.Del(name) // a key of this server where none is expected
		}
	}
	if _, has := r.Header["User-Agent"]; !has {
		r.Header.Set("User-Agent", "") // none of Go's own
	}
	if !p.cred.own {
		for _, name := range []string{"Authorization", "X-Api-Key", "Api-Key"} {
			r.Header.Del(name)
		}
		if err := authorize(r, p.upstream); err != nil {
			return nil, err
		}
	}
	return g.client.Do(r) //nolint:gosec // likewise
}

// isOurs reports whether the value of a header is a key of this server, with or without a scheme before it.
func isOurs(value string) bool {
	words := strings.Fields(value)
	return len(words) > 0 && len(words) <= 2 && strings.HasPrefix(words[len(words)-1], lociPrefix)
}

// authorize adds the server's own credential.
func authorize(r *http.Request, u model.Upstream) error {
	switch {
	case u.Key == "" && u.IsOwn():
		return rest.StatusProblem(http.StatusUnauthorized, fmt.Sprintf("The request has no credential of %s, and the "+
			"server has none: send the provider's key in its usual header, and the key of this server in %s; or let the "+
			"operator set one in LOCI_UPSTREAMS", u.Name, keyHeader))
	case u.Key == "":
	case u.API == model.FormatAnthropic:
		r.Header.Set("X-Api-Key", u.Key)
		if r.Header.Get("Anthropic-Version") == "" {
			r.Header.Set("Anthropic-Version", "2023-06-01")
		}
	default:
		r.Header.Set("Authorization", "Bearer "+u.Key)
	}
	return nil
}

// copyHeader copies the headers that are not of one connection and not left out.
func copyHeader(to, from http.Header, leaveOut func(name string) bool) {
	var named []string // by the header Connection
	for _, list := range from.Values("Connection") {
		for name := range strings.SplitSeq(list, ",") {
			named = append(named, http.CanonicalHeaderKey(strings.TrimSpace(name)))
		}
	}
	for name, values := range from {
		if !slices.Contains(hopByHop, name) && !slices.Contains(named, name) && !leaveOut(name) {
			to[name] = slices.Clone(values)
		}
	}
}

// answerHeader copies the headers of a provider's answer.
func answerHeader(to http.Header, from *http.Response) {
	copyHeader(to, from.Header, func(name string) bool { return strings.HasPrefix(name, headerPrefix) })
	if from.ContentLength < 0 {
		to.Del("Content-Length")
	}
}

// flusher writes each piece of an answer at once.
type flusher struct{ http.ResponseWriter }

func (f flusher) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}

// record keeps the beginning of what is written to it.
type record struct {
	bytes.Buffer
	more bool // more was written than is kept
}

// maxAnswerBytes bounds an answer that is stored.
const maxAnswerBytes = 32 << 20

func (r *record) add(p []byte) {
	if r.more = r.more || r.Len()+len(p) > maxAnswerBytes; !r.more {
		_, _ = r.Write(p) // a buffer takes it
	}
}
