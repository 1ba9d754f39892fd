package embed

import "context"

type bulkKey struct{}

// WithBulk returns a context for work on many texts. Other texts are embedded first.
func WithBulk(ctx context.Context) context.Context { return context.WithValue(ctx, bulkKey{}, true) }

// IsBulk reports whether WithBulk made a context.
func IsBulk(ctx context.Context) bool { return ctx.Value(bulkKey{}) != nil }
