package rest

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/loci-memory/loci/db"
)

// Problem is an error as a caller sees it.
type Problem struct {
	Detail  Detail  `json:"detail" doc:"What is wrong, and what to do about it."`
	Code    string  `json:"code" doc:"The kind of error: a word that never changes."`
	Type    string  `json:"type" doc:"The class of the error."`
	Link    string  `json:"link" doc:"Where this server explains the code."`
	RunID   string  `json:"run_id,omitempty" doc:"The run that is at work in the conversation, or that failed."`
	Pending string  `json:"pending_request_id,omitempty" doc:"The message whose calls wait for the client."`
	Message string  `json:"message,omitempty" doc:"The text of a detail that is an object."`
	Current any     `json:"current,omitempty" doc:"What is stored, where a change expected something else."`
	Quota   *Quota  `json:"quota,omitempty" doc:"The quota that is used up."`
	TraceID *string `json:"trace_id,omitempty" doc:"The request's id, with errors of validation."`

	// Failed is set where the provider of an agent's model failed, in Letta's shape.
	Failed *ModelError `json:"error,omitempty" doc:"Why the provider of the agent's model failed, if it did."`

	status int
	header http.Header
}

// Detail is the text of a problem. If calls wait for the client, the JSON has a PendingDetail instead, as in Letta.
type Detail string

// Schema implements huma.SchemaProvider.
func (Detail) Schema(r Registry) *Schema {
	return OneOf(r, reflect.TypeFor[string](), reflect.TypeFor[PendingDetail]())
}

// PendingDetail says which calls wait for the client.
type PendingDetail struct {
	Code    string `json:"code" enum:"PENDING_APPROVAL" doc:"Always this word."`
	Message string `json:"message"`
	Pending string `json:"pending_request_id" doc:"The message whose calls wait for the client."`
}

// MarshalJSON implements json.Marshaler.
func (p *Problem) MarshalJSON() ([]byte, error) {
	type plain Problem
	if p.Pending == "" {
		return json.Marshal((*plain)(p))
	}
	return json.Marshal(struct {
		Detail PendingDetail `json:"detail"`
		*plain
	}{PendingDetail{"PENDING_APPROVAL", p.Message, p.Pending}, (*plain)(p)})
}

// newProblem returns a problem with one of errorCodes.
func newProblem(code, detail string) *Problem {
	kind := codeOf(code)
	return &Problem{Detail: Detail(detail), Code: code, Type: kind.Type, Link: errorsPath + "/" + code,
		status: kind.Status}
}

// retryLater returns the problem of a request that may succeed after a number of seconds.
func retryLater(code, detail, seconds string) *Problem {
	p := newProblem(code, detail)
	p.header = http.Header{"Retry-After": {seconds}}
	return p
}

// StatusProblem returns the problem for an error of a library, when only its status is known.
func StatusProblem(status int, detail string) *Problem {
	code := codeMalformed
	if status >= http.StatusInternalServerError {
		code = codeInternal
	}
	if i := slices.IndexFunc(errorCodes, func(c ErrorCode) bool { return c.Status == status }); i >= 0 {
		code = errorCodes[i].Code
	}
	p := newProblem(code, detail)
	p.status = status
	return p
}

// RetryAfter sets the pause after which the request may succeed; 0 sets none.
func (p *Problem) RetryAfter(pause time.Duration) *Problem {
	if pause > 0 {
		p.header = http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(pause.Seconds())))}}
	}
	return p
}

// traced adds the request's id to a validation error, as Letta does.
func (p *Problem) traced(ctx context.Context) *Problem {
	if id := requestID(ctx); p.status == http.StatusUnprocessableEntity {
		p.TraceID = &id
	}
	return p
}

// Error implements error.
func (p *Problem) Error() string { return string(p.Detail) }

// GetStatus implements huma.StatusError.
func (p *Problem) GetStatus() int { return p.status }

// GetHeaders implements huma.HeadersError.
func (p *Problem) GetHeaders() http.Header { return p.header }

// Quota describes a quota that is used up.
type Quota = db.QuotaError

// sentence returns an error's text. For an error of Postgres, it returns meaning instead.
func sentence(err error, meaning string) string {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok:
		return err.Error()
	case db.Constraint(pg) != "":
		return meaning + " (" + db.Constraint(pg) + ")"
	case pg.Code == "22021" || pg.Code == "22P05":
		return meaning + ": a text has a NUL or is not UTF-8"
	}
	return meaning
}

// ModelError is a failure of the provider of an agent's model, in Letta's shape.
type ModelError struct {
	Type    string `json:"type" enum:"llm_bad_request,llm_authentication,llm_insufficient_credits,llm_rate_limit,llm_error,llm_timeout"` //nolint:lll // a tag is one line
	Message string `json:"message"`
	Detail  string `json:"detail" doc:"The provider's own words, redacted, of at most 300 characters."`
}

// errorsPath is where errors are explained. Each error's link is a path below it on the server that answered.
const errorsPath = "/v1/errors"
