package rest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/tenant/apikey"
)

// ProblemOf turns an error into the problem that the caller sees. No other file gives an error its status.
func ProblemOf(err error) *Problem {
	var (
		problem     *Problem
		routing     *echo.HTTPError
		unsupported *files.UnsupportedError
		upload      *files.TooLargeError
		field       *db.FieldError
		stronger    *apikey.StrongerError
		bodyLimit   *http.MaxBytesError
	)
	quota, overQuota := db.QuotaExceeded(err)
	switch {
	case errors.As(err, &problem):
		return problem
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
	case errors.Is(err, recall.ErrReset): // no failure for the server's monitoring
		return retryLater(codeConcurrent, err.Error(), "1")
	case errors.Is(err, db.ErrBusy): // before ErrNotFound, because a row may be missing due to another request
		return retryLater(codeBusy, err.Error(), "2")
	case errors.Is(err, db.ErrNotFound):
		return newProblem(codeNotFound, sentence(err, "what the request names does not exist"))
	case errors.Is(err, db.ErrConflict):
		return Conflict(sentence(err, "the request contradicts what is stored"), nil)
	case errors.As(err, &field):
		return newProblem(codeInvalid, err.Error())
	case errors.Is(err, db.ErrTooLong): // a 422, as older servers of Letta answer and its clients expect
		return newProblem(codeInvalid, sentence(err, "a text of the request is too long"))
	case errors.Is(err, db.ErrInvalid):
		p := newProblem(codeInvalid, sentence(err, "a value of the request cannot be stored"))
		p.status = http.StatusBadRequest // as in Letta
		return p
	case errors.Is(err, db.ErrTooMany):
		return retryLater(codeTooMany, err.Error(), "10")
	case db.Deadlocked(err):
		return retryLater(codeConcurrent, "Other requests change the same things at this moment; try again", "1")
	case errors.Is(err, context.Canceled):
		return newProblem(codeClientGone, "Client disconnected")
	case errors.Is(err, db.ErrUnconfirmed):
		return retryLater(codeNoDatabase, "The database did not confirm in time that it stored this, so that it may be "+
			"stored or not: look before you send it again. Messages that come again are not stored twice", "5")
	case db.IsFull(err):
		return noRoom(err)
	case db.FilesChanged(err):
		return retryLater(codeNoDatabase, "The database cannot use its own files, as when its package was upgraded while it "+
			"ran: it must be restarted; try again in a moment", "5")
	case db.LacksSchema(err):
		return retryLater(codeNoDatabase, "The database lacks a part of Loci's schema, because that is being rebuilt, as "+
			"from a backup, or is not this version's; try again in a moment", "5")
	case db.TurnedAway(err):
		return retryLater(codeNoDatabase, "The database does not let the server in: its role, its password or the name of "+
			"its database has changed; try again in a moment", "5")
	case db.TooManyConnections(err):
		return retryLater(codeNoDatabase, "The database takes no more connections, because other sessions have them all; "+
			"try again in a moment", "5")
	case db.IsLocked(err):
		return retryLater(codeNoDatabase, "Another session of the database holds a lock that this needs; try again in a "+
			"moment", "5")
	case errors.Is(err, context.DeadlineExceeded):
		return retryLater(codeNoDatabase, "The database does not answer, or another session of it holds a lock that this "+
			"needs; try again in a moment", "1")
	case db.Unavailable(err):
		return Unavailable()
	}
	return unknown()
}

// quotaProblem is the problem of a request that would exceed a quota. Its header keeps clients from retrying.
func quotaProblem(q *db.QuotaError) *Problem {
	p := newProblem(codeQuota, q.Error())
	p.Quota, p.header = q, http.Header{"X-Should-Retry": {"false"}}
	if !q.Until.IsZero() {
		p.status, p.Type = http.StatusTooManyRequests, typeLimit
		p.header.Set("Retry-After", strconv.Itoa(int(math.Ceil(time.Until(q.Until).Seconds()))))
	}
	return p
}

// routingProblem is the problem of a request that matches no operation.
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

// fail returns the problem that the caller sees for an error. It logs the server's own failures, and hides their causes
// from the caller. own says that the operation is not one of Letta's.
func (a *API) fail(ctx context.Context, err error, own bool) *Problem {
	switch {
	case errors.Is(context.Cause(ctx), ErrStopping): // err may come from a body that ended early
		err = stopping()
	case ctx.Err() != nil && (errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)):
		err = context.Canceled // the answer could not be written
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
	if db.LacksSchema(err) && a.Ready != nil {
		a.lacks.Store(new(time.Now()))
	}
	if _, chosen := errors.AsType[*Problem](err); p.status >= http.StatusInternalServerError && !chosen {
		a.Log.ErrorContext(ctx, "request failed", "status", p.status, "request_id", requestID(ctx), "error", err)
	}
	return p
}

// Explain returns the status and the sentence of an error, as fail does, for answers outside of REST.
func (a *API) Explain(ctx context.Context, err error) (status int, sentence string) {
	p := a.fail(ctx, err, true)
	return p.status, string(p.Detail)
}

// outlived reports whether a request failed in the database because its organization, with its keys, was deleted
// meanwhile.
func outlived(ctx context.Context, err error) bool {
	_, inDatabase := errors.AsType[*pgconn.PgError](err)
	recheck, ok := ctx.Value(keyRecheck).(func() error)
	return ok && inDatabase && errors.Is(recheck(), ErrUnauthorized)
}

// CheckRoom returns an error if the database is read-only, or if a change could not be stored earlier and still cannot.
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

// writeError answers with an error on routes that huma does not serve.
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
