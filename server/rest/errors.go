package rest

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

// Malformed is the problem of a request that cannot be read.
func Malformed(detail string) *Problem { return newProblem(codeMalformed, detail) }

// Forbidden is the problem of a request that this server never answers, such as one for another host.
func Forbidden(detail string) *Problem { return newProblem(codeForbidden, detail) }

// NotAllowed is the problem of an operation that no request can make happen.
func NotAllowed(detail string) *Problem {
	p := newProblem(codeMethod, detail)
	p.header = http.Header{"Allow": {""}, "X-Should-Retry": {"false"}}
	return p
}

// notServed is the problem of a route that Letta has and this server does not. why is a sentence.
func notServed(why string) *Problem { return NotServed(why + " " + routesServed) }

// routesServed says where a client finds the routes of this server.
const routesServed = "GET /openapi.json of this server lists the routes that it serves"

// NotServed is the problem of a request for something that this server never does. why is a sentence.
func NotServed(why string) *Problem {
	p := newProblem(codeNotServed, why)
	p.header = http.Header{"X-Should-Retry": {"false"}} // else clients would send it twice again
	return p
}

// TooLarge is the problem of a body beyond its limit.
func TooLarge(limitBytes int64) *Problem { return PartTooLarge("The request's body", limitBytes) }

// PartTooLarge is the problem of a body with a part beyond its limit. part is the subject of a sentence.
func PartTooLarge(part string, limitBytes int64) *Problem {
	return newProblem(codeTooLarge, fmt.Sprintf("%s is larger than %d bytes", part, limitBytes))
}

// Unprocessable is the problem of a request that breaks a rule of its form. location names the field.
func Unprocessable(location, rule string) *Problem {
	return newProblem(codeInvalid, location+": "+rule)
}

// Conflict is the problem of a request that contradicts what is stored. current is shown with the problem unless it is
// nil.
func Conflict(detail string, current any) *Problem {
	p := newProblem(codeConflict, detail)
	p.Current, p.header = current, http.Header{"X-Should-Retry": {"false"}} // else clients would send it twice again
	return p
}

// Busy is the problem of a request to a conversation in which a run is working.
func Busy(detail, runID string) *Problem {
	p := Conflict(detail, nil)
	p.RunID = runID
	return p
}

// PendingApproval is the problem of a request to a conversation that waits for the client: its last message has calls
// that the client must answer.
func PendingApproval(detail, messageID string) *Problem {
	p := newProblem(codeApproval, detail)
	p.Message, p.Pending, p.header = detail, messageID, http.Header{"X-Should-Retry": {"false"}}
	return p
}

// Expired is the problem of a request for a stream that is no longer kept.
func Expired(detail string) *Problem { return newProblem(codeExpired, detail) }

// NoModel is the problem of a request that needs a language model where none is configured.
func NoModel(detail string) *Problem {
	p := newProblem(codeNoModel, detail)
	p.header = http.Header{"X-Should-Retry": {"false"}}
	return p
}

// Unavailable is the problem of a request that may succeed in a moment.
func Unavailable() *Problem {
	return retryLater(codeNoDatabase, "The database does not answer; try again in a moment", "1")
}

// noRoom is the problem of a change that cannot be stored until the operator makes room, or makes the database
// writable.
func noRoom(err error) *Problem {
	if db.IsReadOnly(err) {
		return retryLater(codeNoRoom, "The server's database is read-only; try again when its operator has made it writable",
			"30")
	}
	return retryLater(codeNoRoom, "The server has no room to store anything; try again when its operator has made some",
		"30")
}

// ErrStopping is the cause with which a stopping server ends a request's context when it no longer waits for the
// request.
var ErrStopping = errors.New("the server stops")

// stopping is the problem of a request that was not done when the server stopped.
func stopping() *Problem {
	return retryLater(codeStopping, "The server stops, and did not end this request; send it again in a moment", "5")
}

// unknown is the problem of a failure in the server. It hides the cause.
func unknown() *Problem { return newProblem(codeInternal, "An unknown error occurred") }

// unauthorized is the problem of a request without a key that the server accepts.
func unauthorized(err error) *Problem {
	code, challenge := codeKey, `Bearer realm="Loci"`
	if !errors.Is(err, errNoKey) {
		challenge += `, error="invalid_token"`
	}
	if errors.Is(err, apikey.ErrExpired) {
		code = codeKeyExpired
	}
	p := newProblem(code, err.Error())
	p.header = http.Header{"Www-Authenticate": {challenge}, "X-Should-Retry": {"false"}}
	return p
}

// ErrUnauthorized says that a request has no key that this server accepts.
var ErrUnauthorized = errors.New("Unauthorized")

var (
	errNoKey = fmt.Errorf("%w: the request has no API key; send 'Authorization: Bearer KEY' with a key of "+
		"'loci keys create'", ErrUnauthorized)
	errUnknownKey = fmt.Errorf("%w: this server does not know the API key, or it was revoked; send "+
		"'Authorization: Bearer KEY' with a key of 'loci keys create'", ErrUnauthorized)
)

// expiredKey is the error of a request with an expired key. It says when the key expired, because the caller has the
// key.
func expiredKey(key apikey.Key) error {
	return fmt.Errorf("%w: the API key has %w at %s; use a new one of 'loci keys create'", ErrUnauthorized,
		apikey.ErrExpired, key.ExpiresAt.UTC().Format(time.RFC3339))
}
