package provider

import (
	"context"
	"errors"
	"fmt"
)

// told is an error with a text for the operator and another one for organizations.
type told struct {
	error
	public string
}

// Unwrap returns the operator's error.
func (e *told) Unwrap() error { return e.error }

// Public returns the text for organizations.
func (e *told) Public() string { return e.public }

// Told returns an operator's error with a sentence for organizations: what happened, without hosts, names of settings
// and the provider's own words.
func Told(err error, format string, args ...any) error {
	return &told{err, fmt.Sprintf(format, args...)}
}

// Public returns what organizations may read of an endpoint's error: the sentence from Told, or only that the endpoint
// fails.
func Public(err error) string {
	if known, ok := errors.AsType[interface {
		error
		Public() string
	}](err); ok {
		return known.Public()
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "the endpoint does not answer in time"
	}
	return "the endpoint fails"
}
