package rest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/tenant/apikey"
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

	// Failed is set where the provider of an agent's model failed, as Letta has it.
	Failed *ModelError `json:"error,omitempty" doc:"Why the provider of the agent's model failed, if it did."`

	status int
	header http.Header
}

// Detail is the text of a problem. That of calls that wait for the client is shown as a PendingDetail, as Letta does.
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

// newProblem returns a problem of one of errorCodes.
func newProblem(code, detail string) *Problem {
	kind := codeOf(code)
	return &Problem{Detail: Detail(detail), Code: code, Type: kind.Type, Link: errorsPath + "/" + code,
		status: kind.Status}
}

// retryLater returns a problem of a request that may succeed after a number of seconds.
func retryLater(code, detail, seconds string) *Problem {
	p := newProblem(code, detail)
	p.header = http.Header{"Retry-After": {seconds}}
	return p
}

// StatusProblem returns the problem of a library's error, of which only the status is known.
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

// Malformed is a request that cannot be read.
func Malformed(detail string) *Problem { return newProblem(codeMalformed, detail) }

// Forbidden is the problem of a request that this server never answers, like one from another host.
func Forbidden(detail string) *Problem { return newProblem(codeForbidden, detail) }

// NotAllowed is an operation that no request can make happen.
func NotAllowed(detail string) *Problem {
	p := newProblem(codeMethod, detail)
	p.header = http.Header{"Allow": {""}, "X-Should-Retry": {"false"}}
	return p
}

// notServed is the problem of a route of Letta's that this server does not have. why is a sentence.
func notServed(why string) *Problem { return NotServed(why + " " + routesServed) }

// routesServed says where a client finds the routes of this server.
const routesServed = "GET /openapi.json of this server lists the routes that it serves"

// NotServed is a request for something that this server never does. why is a sentence.
func NotServed(why string) *Problem {
	p := newProblem(codeNotServed, why)
	p.header = http.Header{"X-Should-Retry": {"false"}} // clients would send it twice again
	return p
}

// TooLarge is a body beyond its limit.
func TooLarge(limitBytes int64) *Problem {
	return newProblem(codeTooLarge, fmt.Sprintf("The request's body is larger than %d bytes", limitBytes))
}

// Unprocessable is a request that breaks a rule of its form: location names the field.
func Unprocessable(location, rule string) *Problem {
	return newProblem(codeInvalid, location+": "+rule)
}

// Conflict is a request that contradicts what is stored. current is shown with it unless it is nil.
func Conflict(detail string, current any) *Problem {
	p := newProblem(codeConflict, detail)
	p.Current, p.header = current, http.Header{"X-Should-Retry": {"false"}} // clients would send it twice again
	return p
}

// Busy is a request to a conversation in which a run is at work.
func Busy(detail, runID string) *Problem {
	p := Conflict(detail, nil)
	p.RunID = runID
	return p
}

// PendingApproval is a request to a conversation whose last message has calls that wait for the client.
func PendingApproval(detail, messageID string) *Problem {
	p := newProblem(codeApproval, detail)
	p.Message, p.Pending, p.header = detail, messageID, http.Header{"X-Should-Retry": {"false"}}
	return p
}

// Expired is a request for a stream that is no longer kept.
func Expired(detail string) *Problem { return newProblem(codeExpired, detail) }

// NoModel is a request that needs a language model where none is configured.
func NoModel(detail string) *Problem {
	p := newProblem(codeNoModel, detail)
	p.header = http.Header{"X-Should-Retry": {"false"}}
	return p
}

// RetryAfter adds a pause after which the request may succeed; 0 adds none.
func (p *Problem) RetryAfter(pause time.Duration) *Problem {
	if pause > 0 {
		p.header = http.Header{"Retry-After": {strconv.Itoa(int(math.Ceil(pause.Seconds())))}}
	}
	return p
}

// Unavailable is a request that may succeed in a moment.
func Unavailable() *Problem {
	return retryLater(codeNoDatabase, "The database does not answer; try again in a moment", "1")
}

// noRoom is a change that cannot be stored until the operator makes room, or makes the database writable.
func noRoom(err error) *Problem {
	if db.IsReadOnly(err) {
		return retryLater(codeNoRoom, "The server's database is read-only; try again when its operator has made it writable",
			"30")
	}
	return retryLater(codeNoRoom, "The server has no room to store anything; try again when its operator has made some",
		"30")
}

// ErrStopping is the cause of the end of a request's context where the server stops and no longer waits for it.
var ErrStopping = errors.New("the server stops")

// stopping is a request that was not done when the server stopped.
func stopping() *Problem {
	return retryLater(codeStopping, "The server stops, and did not end this request; send it again in a moment", "5")
}

// unknown is the server's own fault, whose cause is not told.
func unknown() *Problem { return newProblem(codeInternal, "An unknown error occurred") }

// unauthorized is a request without a key that the server accepts.
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

// traced names the request in an error of validation, as Letta does.
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

// statusClientGone is nginx's and Letta's word for a caller who did not wait; nobody reads it but the log.
const statusClientGone = 499

// ErrUnauthorized is a request without a key that this server accepts.
var ErrUnauthorized = errors.New("Unauthorized")

var (
	errNoKey = fmt.Errorf("%w: the request has no API key; send 'Authorization: Bearer KEY' with a key of "+
		"'loci keys create'", ErrUnauthorized)
	errUnknownKey = fmt.Errorf("%w: this server does not know the API key, or it was revoked; send "+
		"'Authorization: Bearer KEY' with a key of 'loci keys create'", ErrUnauthorized)
)

// expiredKey is a request with a key that has expired. Who has the key may know when.
func expiredKey(key apikey.Key) error {
	return fmt.Errorf("%w: the API key has %w at %s; use a new one of 'loci keys create'", ErrUnauthorized,
		apikey.ErrExpired, key.ExpiresAt.UTC().Format(time.RFC3339))
}

// ProblemOf decides what an error is to a caller. No other file gives an error its status.
func ProblemOf(err error) *Problem {
	var (
		own         *Problem
		routing     *echo.HTTPError
		unsupported *files.UnsupportedError
		upload      *files.TooLargeError
		field       *db.FieldError
		stronger    *apikey.StrongerError
		bodyLimit   *http.MaxBytesError
	)
	quota, overQuota := db.QuotaExceeded(err)
	switch {
	case errors.As(err, &own):
		return own
	case overQuota:
		return quotaProblem(quota)
	case errors.As(err, &routing):
		return routingProblem(routing)
	case errors.As(err, &unsupported):
		return newProblem(codeMediaType, unsupported.Error())
	case errors.As(err, &upload):
		return newProblem(codeTooLarge, upload.Error())
	case errors.As(err, &bodyLimit):
		return TooLarge(bodyLimit.Limit)
	case errors.Is(err, ErrUnauthorized):
		return unauthorized(err)
	case errors.As(err, &stronger):
		return forbiddenScope(apikey.Admin, stronger.Error())
	case errors.Is(err, recall.ErrReset): // the server is well: nothing for those who watch it
		return retryLater(codeConcurrent, err.Error(), "1")
	case errors.Is(err, db.ErrBusy): // before what was not found because of other requests
		return retryLater(codeBusy, err.Error(), "2")
	case errors.Is(err, db.ErrNotFound):
		return newProblem(codeNotFound, sentence(err, "what the request names does not exist"))
	case errors.Is(err, db.ErrConflict):
		return Conflict(sentence(err, "the request contradicts what is stored"), nil)
	case errors.As(err, &field):
		return newProblem(codeInvalid, err.Error())
	case errors.Is(err, db.ErrInvalid):
		p := newProblem(codeInvalid, sentence(err, "a value of the request cannot be stored"))
		p.status = http.StatusBadRequest // as in Letta
		return p
	case errors.Is(err, db.ErrTooMany):
		return retryLater(codeTooMany, err.Error(), "10")
	case deadlocked(err):
		return retryLater(codeConcurrent, "Other requests change the same things at this moment; try again", "1")
	case errors.Is(err, context.Canceled):
		return newProblem(codeClientGone, "Client disconnected")
	case db.IsFull(err):
		return noRoom(err)
	case db.FilesChanged(err):
		return retryLater(codeNoDatabase, "The database cannot use its own files, as when its package was upgraded while it "+
			"ran: it must be restarted; try again in a moment", "5")
	case db.TooManyConnections(err):
		return retryLater(codeNoDatabase, "The database takes no more connections, because other sessions have them all; "+
			"try again in a moment", "5")
	case db.IsLocked(err):
		return retryLater(codeNoDatabase, "Another session of the database holds a lock that this needs; try again in a "+
			"moment", "5")
	case db.Unavailable(err):
		return Unavailable()
	}
	return unknown()
}

// Quota is a quota that is used up.
type Quota = db.QuotaError

// quotaProblem is a request that would exceed a quota. Clients would send it twice again.
func quotaProblem(q *db.QuotaError) *Problem {
	p := newProblem(codeQuota, q.Error())
	p.Quota, p.header = q, http.Header{"X-Should-Retry": {"false"}}
	if q.Quota == db.QuotaRequests {
		p.status, p.Type = http.StatusTooManyRequests, typeLimit
		p.header.Set("Retry-After", strconv.Itoa(int(math.Ceil(time.Until(q.Until).Seconds()))))
	}
	return p
}

// routingProblem is the problem of a request that no operation answers.
func routingProblem(err *echo.HTTPError) *Problem {
	if err.Code == http.StatusNotFound {
		return newProblem(codeRoute, fmt.Sprint(err.Message))
	}
	p := StatusProblem(err.Code, fmt.Sprint(err.Message))
	if err.Code == http.StatusMethodNotAllowed {
		p.header = http.Header{"X-Should-Retry": {"false"}}
	}
	return p
}

// sentence is the text of an error, or, where that is Postgres' own, what it means.
func sentence(err error, meaning string) string {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case !ok:
		return err.Error()
	case pg.ConstraintName != "":
		return meaning + " (" + pg.ConstraintName + ")"
	case pg.Code == "22021" || pg.Code == "22P05":
		return meaning + ": a text has a NUL or is not UTF-8"
	}
	return meaning
}

// deadlocked reports whether Postgres broke a transaction off to let another one go on.
func deadlocked(err error) bool {
	pg, ok := errors.AsType[*pgconn.PgError](err)
	return ok && (pg.Code == "40P01" || pg.Code == "40001")
}

// fail returns the problem that a caller is shown for an error. It logs the server's own failures, whose cause the
// caller is not shown. own says that the operation is not Letta's.
func (a *API) fail(ctx context.Context, err error, own bool) *Problem {
	switch {
	case errors.Is(context.Cause(ctx), ErrStopping): // err may be that of a body that ended early
		err = stopping()
	case outlived(ctx, err):
		err = errUnknownKey
	}
	p := ProblemOf(err)
	if own && p.Code == codeInvalid {
		p.status = http.StatusUnprocessableEntity
	}
	p = p.traced(ctx)
	if db.IsFull(err) {
		a.full.Store(true)
	}
	if _, chosen := errors.AsType[*Problem](err); p.status >= http.StatusInternalServerError && !chosen {
		a.Log.ErrorContext(ctx, "request failed", "status", p.status, "request_id", requestID(ctx), "error", err)
	}
	return p
}

// Explain returns the status and the sentence of an error, as fail decides them, for what is not answered over REST.
func (a *API) Explain(ctx context.Context, err error) (status int, sentence string) {
	p := a.fail(ctx, err, true)
	return p.status, string(p.Detail)
}

// outlived reports whether a request failed in the database as its organization was deleted meanwhile, with its keys.
func outlived(ctx context.Context, err error) bool {
	_, inDatabase := errors.AsType[*pgconn.PgError](err)
	recheck, ok := ctx.Value(keyRecheck).(func() error)
	return ok && inDatabase && errors.Is(recheck(), ErrUnauthorized)
}

// CheckRoom returns an error if the database is read-only, or if changes can still not be stored after one could not.
func (a *API) CheckRoom(ctx context.Context, d db.DB) error {
	if err := db.CheckWritable(ctx, d); err != nil || !a.full.Load() {
		return err
	}
	if err := db.CheckRoom(ctx, d); err != nil {
		return err
	}
	a.full.Store(false)
	return nil
}

// writeError answers with an error on the routes that huma does not serve.
func (a *API) writeError(err error, c echo.Context) {
	p := a.fail(c.Request().Context(), err, false)
	if c.Response().Committed {
		return
	}
	maps.Copy(c.Response().Header(), p.header)
	if err := c.JSON(p.status, p); err != nil {
		a.Log.DebugContext(c.Request().Context(), "answer an error", "error", err)
	}
}
