package rest

import (
	"context"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/tenant/apikey"
)

type contextKey int

const (
	keyRequestID contextKey = iota
	keyCaller
	keyRecheck
	keyWarnings
	keyBody
	keyAuthTook
)

// requestID returns the id of the request that ctx belongs to; empty outside of a request.
func requestID(ctx context.Context) string {
	id, _ := ctx.Value(keyRequestID).(string)
	return id
}

// AuthTook returns how long authentication took. That time is part of the time that the whole request may take.
func AuthTook(ctx context.Context) time.Duration {
	took, _ := ctx.Value(keyAuthTook).(time.Duration)
	return took
}

// Org returns the organization of a request.
func Org(ctx context.Context) db.Org { return db.OrgOf(ctx) }

// KeyOf returns the id of the API key of a request; empty if it has none.
func KeyOf(ctx context.Context) string { return db.Provenance{}.Or(ctx).KeyID }

// IsOperator reports whether the operator sent a request: with an operator's key, or without a key to a server that
// needs none.
func IsOperator(ctx context.Context) bool {
	return Caller(ctx).Operator
}

// Caller returns the key of a request. Its ID is empty if the request has none.
func Caller(ctx context.Context) apikey.Key {
	key, _ := ctx.Value(keyCaller).(apikey.Key)
	return key
}

func setContext(c echo.Context, key contextKey, value any) {
	c.SetRequest(c.Request().WithContext(context.WithValue(c.Request().Context(), key, value)))
}
