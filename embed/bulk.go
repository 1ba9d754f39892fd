package embed

import "context"

type bulkKey struct{}

// WithBulk returns a context of work on many texts, which other texts need not wait for.
func WithBulk(ctx context.Context) context.Context { return context.WithValue(ctx, bulkKey{}, true) }

// IsBulk reports whether a context is of WithBulk.
func IsBulk(ctx context.Context) bool { return ctx.Value(bulkKey{}) != nil }
