package provider

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

const (
	maxErrorBytes = 64 << 10

	firstWait   = 500 * time.Millisecond
	longestWait = 8 * time.Second
	// patience is the longest wait a provider may ask for: beyond it the caller's own retries are the better place to wait.
	patience = 30 * time.Second
)

var (
	errRedirect = errors.New("redirected")
	errTooBig   = errors.New("answer too big")
)

// httpClient is the configured client with attempts, a deadline for each of them, bounded answers and no redirects.
func (e *Endpoint) httpClient() *http.Client {
	client := *e.HTTP
	next := client.Transport
	if next == nil {
		next = http.DefaultTransport
	}
	client.Transport = &retrier{Endpoint: e, next: next}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return errRedirect }
	client.Timeout = 0
	return &client
}

// retrier sends a request until it is answered for good. It sits below go-openai because that drops the headers of an error, and
// with them Retry-After.
type retrier struct {
	*Endpoint
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper. The answer's body is in memory already.
func (r *retrier) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := drain(req)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		answer, err := r.once(req, body)
		if !r.passing(req.Context(), answer, err) {
			return answer, err
		}
		r.note(req.Context(), answer)
		if attempt >= r.Attempts {
			return answer, err
		}
		pause := r.pause(answer, attempt)
		if pause > patience || r.endsBefore(req.Context(), pause) {
			return answer, err
		}
		if err := r.Wait(req.Context(), pause); err != nil {
			return nil, err
		}
	}
}

type contextKey int

// keyLater is under which a request's context takes how long the provider asked to wait.
const keyLater contextKey = iota

// WithLater returns a context whose requests note how long the provider asked to wait when it was last asked in vain.
func WithLater(ctx context.Context, later *time.Duration) context.Context {
	return context.WithValue(ctx, keyLater, later)
}

// note tells the request how long the provider asked to wait, which go-openai does not.
func (r *retrier) note(ctx context.Context, answer *http.Response) {
	later, ok := ctx.Value(keyLater).(*time.Duration)
	if !ok || answer == nil {
		return
	}
	*later, _ = r.asked(answer.Header)
}

// drain reads the request's body, so that it can be sent again.
func drain(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	return body, errors.Join(err, req.Body.Close())
}

// once sends the request and reads the whole answer within the attempt's time.
func (r *retrier) once(req *http.Request, body []byte) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(req.Context(), r.Timeout)
	defer cancel()
	attempt := req.Clone(ctx)
	attempt.Body = io.NopCloser(bytes.NewReader(body))
	answer, err := r.next.RoundTrip(attempt)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	content, err := r.read(answer)
	if err != nil {
		return nil, err
	}
	answer.Body = io.NopCloser(bytes.NewReader(content))
	return answer, nil
}

// read reads a good answer whole or not at all, and of an error's text the beginning.
func (r *retrier) read(answer *http.Response) ([]byte, error) {
	if answer.StatusCode >= 300 {
		return io.ReadAll(io.LimitReader(answer.Body, maxErrorBytes))
	}
	content, err := io.ReadAll(io.LimitReader(answer.Body, r.MaxAnswerBytes+1))
	if err == nil && int64(len(content)) > r.MaxAnswerBytes {
		err = errTooBig
	}
	return content, err
}

// passing tells whether a failure may pass by waiting.
func (r *retrier) passing(ctx context.Context, answer *http.Response, err error) bool {
	if err != nil { // what took too long once would do so again
		return ctx.Err() == nil && !errors.Is(err, errTooBig) && !errors.Is(err, context.DeadlineExceeded)
	}
	switch code := answer.StatusCode; {
	case code < 400:
		return false
	case code == http.StatusRequestTimeout, code == http.StatusConflict, code == http.StatusTooManyRequests, code >= 500:
		return !r.Refuses(code, peek(answer))
	}
	return false
}

// peek returns the body and leaves it to be read again.
func peek(answer *http.Response) string {
	content, _ := io.ReadAll(answer.Body) // in memory, cannot fail
	answer.Body = io.NopCloser(bytes.NewReader(content))
	return string(content)
}

// pause is how long the provider asks to wait, or else twice as long as the last time, of which up to a half is left to chance.
func (r *retrier) pause(answer *http.Response, attempt int) time.Duration {
	if answer != nil {
		if asked, ok := r.asked(answer.Header); ok {
			return asked
		}
	}
	full := min(firstWait<<(attempt-1), longestWait)
	return full/2 + rand.N(full/2+1) //nolint:gosec // spreads retries, guards nothing
}

// asked reads retry-after-ms and Retry-After, the latter in seconds or as a date.
func (r *retrier) asked(header http.Header) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(header.Get("Retry-After-Ms"), 64); err == nil {
		return inUnits(ms, time.Millisecond)
	}
	after := header.Get("Retry-After")
	if seconds, err := strconv.ParseFloat(after, 64); err == nil {
		return inUnits(seconds, time.Second)
	}
	if at, err := http.ParseTime(after); err == nil {
		return max(0, at.Sub(r.Now())), true
	}
	return 0, false
}

// inUnits reads a header's number: none below zero, and none that a duration cannot hold.
func inUnits(n float64, unit time.Duration) (time.Duration, bool) {
	if !(n >= 0) {
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(time.Hour))), true
}

// endsBefore tells whether the context ends before the pause does, so that waiting would only lose the reason.
func (r *retrier) endsBefore(ctx context.Context, pause time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && deadline.Sub(r.Now()) < pause
}

// sleep waits for d or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
