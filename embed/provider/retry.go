package provider

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
)

const (
	maxErrorBytes = 64 << 10

	firstPause = 500 * time.Millisecond
	maxPause   = 8 * time.Second
	// maxRetryAfter is the longest pause that the provider may ask for and that is waited for here. A longer one is left
	// to the caller's retries.
	maxRetryAfter = 30 * time.Second
)

var (
	errRedirect = errors.New("redirected") // with or without a target
	// ErrTooBig is the error for an answer that is larger than the endpoint's MaxAnswerBytes.
	ErrTooBig = errors.New("answer too big")
)

// HTTPClient returns the configured client with retries, a deadline for each attempt, limited answers and no redirects.
// Call Client first.
func (e *Endpoint) HTTPClient() *http.Client {
	client := *e.HTTP
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	client.Transport = &retrier{Endpoint: e, next: next}
	client.Timeout = 0
	return &client
}

// retrier repeats a request until it succeeds or a retry cannot help. It works below go-openai, which drops the headers
// of an error, including Retry-After.
type retrier struct {
	*Endpoint
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. The body of the answer is in memory, unless the endpoint streams.
func (r *retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, attempt, pause := req.Context(), 0, time.Duration(0)
	retry := func(answer *http.Response, err error) bool {
		if !r.mayPass(ctx, answer, err) {
			return false
		}
		noteRetryAfter(ctx, answer)
		attempt++
		pause = r.pause(answer, attempt)
		return pause <= maxRetryAfter && !endsWithin(ctx, pause)
	}
	policy := retrypolicy.NewBuilder[*http.Response]().WithMaxAttempts(r.Attempts).ReturnLastFailure().HandleIf(retry).
		WithDelayFunc(func(failsafe.ExecutionAttempt[*http.Response]) time.Duration { return pause }).Build()
	return failsafe.With(policy).WithContext(ctx).Get(func() (*http.Response, error) { return r.once(req) })
}

type contextKey int

// retryAfterKey is the context's key for a *time.Duration that receives the pause that the provider asks for.
const retryAfterKey contextKey = iota

// WithRetryAfter returns a context for requests. They write to after the pause that the provider asked for with its
// last failure.
func WithRetryAfter(ctx context.Context, after *time.Duration) context.Context {
	return context.WithValue(ctx, retryAfterKey, after)
}

// noteRetryAfter writes the pause that the provider asks for to the request's context, because go-openai drops the
// header.
func noteRetryAfter(ctx context.Context, answer *http.Response) {
	if after, ok := ctx.Value(retryAfterKey).(*time.Duration); ok && answer != nil {
		*after, _ = retryAfter(answer.Header) // 0 without the header
	}
}

// once sends the request and reads the answer within the time limit of an attempt: the whole answer, unless it is
// streamed.
func (r *retrier) once(req *http.Request) (*http.Response, error) {
	limit := newIdleLimit(req.Context(), r.Timeout)
	answer, err := r.send(req.Clone(limit.ctx)) //nolint:contextcheck // it is derived from the request's
	if err != nil {
		limit.stop()
		return nil, limit.explain(err)
	}
	if answer.StatusCode >= http.StatusMultipleChoices && answer.StatusCode < http.StatusBadRequest {
		limit.stop()
		return nil, errors.Join(errRedirect, answer.Body.Close())
	}
	if r.Streams && answer.StatusCode < 300 {
		answer.Body = &streamedBody{body: answer.Body, left: streamFactor * r.MaxAnswerBytes, limit: limit}
		return answer, nil
	}
	defer limit.stop()
	defer answer.Body.Close()
	content, err := r.read(answer)
	if err != nil {
		return nil, limit.explain(err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	return answer, nil
}

// send sends a copy of a request.
func (r *retrier) send(attempt *http.Request) (*http.Response, error) {
	if attempt.GetBody != nil { // go-openai's requests have it
		body, err := attempt.GetBody()
		if err != nil {
			return nil, err
		}
		attempt.Body = body
	}
	return r.next.RoundTrip(attempt)
}

// read returns the whole body of a good answer or ErrTooBig; of an error, it returns the first maxErrorBytes.
func (r *retrier) read(answer *http.Response) ([]byte, error) {
	if answer.StatusCode >= 300 {
		return io.ReadAll(io.LimitReader(answer.Body, maxErrorBytes))
	}
	content, err := io.ReadAll(io.LimitReader(answer.Body, r.MaxAnswerBytes+1))
	if err == nil && int64(len(content)) > r.MaxAnswerBytes {
		err = ErrTooBig
	}
	return content, err
}

// mayPass reports whether another attempt may succeed. After a timeout it would time out again.
func (r *retrier) mayPass(ctx context.Context, answer *http.Response, err error) bool {
	if err != nil {
		return ctx.Err() == nil && !errors.Is(err, ErrTooBig) && !errors.Is(err, errRedirect) &&
			!errors.Is(err, context.DeadlineExceeded)
	}
	switch code := answer.StatusCode; {
	case code < 400:
		return false
	case code == http.StatusRequestTimeout, code == http.StatusConflict, code == http.StatusTooManyRequests, code >= 500:
		return !r.Refuses(code, peek(answer))
	}
	return false
}

// peek returns the body, which can be read again.
func peek(answer *http.Response) string {
	content, _ := io.ReadAll(answer.Body) // in memory, so reading cannot fail
	answer.Body = io.NopCloser(bytes.NewReader(content))
	return string(content)
}

// pause returns the pause that the provider asks for. If it asks for none, the pause doubles with each attempt, minus a
// random part of up to half of it.
func (r *retrier) pause(answer *http.Response, attempt int) time.Duration {
	if answer != nil {
		if after, ok := retryAfter(answer.Header); ok {
			return after
		}
	}
	full := min(cmp.Or(r.FirstPause, firstPause)<<(attempt-1), maxPause)
	return full/2 + rand.N(full/2+1) //nolint:gosec // spreads retries, guards nothing
}

// retryAfter reads Retry-After-Ms and Retry-After; the latter is in seconds or a date.
func retryAfter(header http.Header) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return inUnits(ms, time.Millisecond)
	}
	after := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(after, 64); err == nil {
		return inUnits(seconds, time.Second)
	}
	if retryTime, err := http.ParseTime(after); err == nil {
		return max(0, time.Until(retryTime)), true
	}
	return 0, false
}

// inUnits returns n units, at most an hour, or false if n is negative or NaN.
func inUnits(n float64, unit time.Duration) (time.Duration, bool) {
	if !(n >= 0) {
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(time.Hour))), true
}

// endsWithin reports whether the context ends before the pause does.
func endsWithin(ctx context.Context, pause time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < pause
}
