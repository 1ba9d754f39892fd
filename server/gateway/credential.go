package gateway

import (
	"cmp"
	"crypto/sha256"
	"net/http"
	"strings"
	"time"

	"github.com/loci-memory/loci/server/rest"
)

// The headers of requests that are for this server; they are not passed on.
const (
	headerPrefix       = "X-Loci-"
	keyHeader          = "X-Loci-Key"
	agentHeader        = "X-Loci-Agent"
	conversationHeader = "X-Loci-Conversation"
	modeHeader         = "X-Loci-Mode"
	upstreamHeader     = "X-Loci-Upstream"
	memoryHeader       = "X-Loci-Memory" // of answers: whether the memory took part
)

// credentials are those of a request.
type credentials struct {
	secret string // of the key of this server; empty: the request has none
	named  bool   // the secret stands where no provider's credential does
	own    bool   // the request has a credential of its provider
}

// credentialsOf reads a request's credentials. keyInPath may be empty. A token that may be either counts as a key of
// this server; if there is no such key, it is the provider's.
func credentialsOf(r *http.Request, keyInPath string) credentials {
	token := tokenOf(r)
	for _, secret := range []string{keyInPath, r.Header.Get(keyHeader)} {
		if secret != "" {
			return credentials{secret: secret, named: true, own: token != "" && token != secret}
		}
	}
	if isProviders(token) {
		return credentials{own: true}
	}
	return credentials{secret: token}
}

// tokenOf returns the credential in the headers that providers use; empty if there is none.
func tokenOf(r *http.Request) string {
	if scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " "); strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	return strings.TrimSpace(cmp.Or(r.Header.Get("X-Api-Key"), r.Header.Get("Api-Key")))
}

// lociPrefix begins the keys that Loci makes. No such token is ever passed on.
const lociPrefix = "loci_"

// isProviders reports whether a token has the form of a provider's. Letta's servers have keys that begin likewise.
func isProviders(token string) bool {
	return strings.HasPrefix(token, "sk-") && !strings.HasPrefix(token, "sk-let-")
}

const (
	// AdmitTimeout is how long a request waits for the database to find its key.
	AdmitTimeout = 1500 * time.Millisecond
	// awayFor is how long a memory that could not be reached is not asked again, if requests may pass without it.
	awayFor = 2 * time.Second
)

// admit finds the key of a request, and says whether the memory is away. done is as that of rest.API.Admit.
func (g *Gateway) admit(c *Call, cred *credentials) (done func(), away bool, err error) {
	sum := sha256.Sum256([]byte(cred.secret))
	passes := g.OnFailure != Refuse && (cred.own || cred.secret != "" && g.seen.isTrusted(sum, now()))
	if passes && g.away.Load() > now().UnixNano() {
		return func() {}, true, nil
	}
	begin := now()
	r, done, err := c.Admit(cred.secret)
	if err == nil {
		c.Request = r
		switch {
		case rest.Caller(r.Context()).ID != "":
			g.seen.note(sum, now())
		case strings.HasPrefix(cred.secret, lociPrefix) || cred.secret != "" && cred.named: // an open server has no such key
			return done, false, rest.StatusProblem(http.StatusUnauthorized, "The API key is not known to this server")
		case cred.secret != "": // the token is the provider's
			cred.secret, cred.own = "", true
		}
		return done, false, nil
	}
	if rest.ProblemOf(err).GetStatus() < http.StatusInternalServerError {
		g.seen.forget(sum)
		return done, false, err
	}
	if g.leaveAlone(begin); passes {
		return done, true, nil
	}
	return done, true, err
}
