package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/sashabaranov/go-openai"

	"github.com/loci-memory/loci/compaction/llm"
	"github.com/loci-memory/loci/embed/provider"
)

// FaultKind says what a failure is about.
type FaultKind int

// The kinds of faults.
const (
	Failed   FaultKind = iota // the provider fails, limits requests, or cannot be reached
	Overflow                  // the prompt is larger than the model's window
	Credits                   // the provider's account has no credit
	Broken                    // the answer cannot be used
)

// Fault is a failure of a provider. Its text is the operator's; Public says what organizations read.
type Fault struct {
	Kind    FaultKind
	Again   bool          // the same request may succeed later
	Limited bool          // because the provider limits requests: not at once
	After   time.Duration // the pause that the provider asks for; 0 if it asks for none
	Err     error
}

// Error implements error.
func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns the failure.
func (f *Fault) Unwrap() error { return f.Err }

// Public returns what organizations read of the failure.
func (f *Fault) Public() string { return provider.Public(f.Err) }

// broken returns the fault of an answer that cannot be used. A second answer to the same prompt may be a good one.
func broken(at *provider.Endpoint, how string) *Fault {
	return &Fault{Kind: Broken, Again: true, Err: at.Wrong("%s", how)}
}

// cut returns the fault of a stream that ends before its answer does, or the error of ctx.
func cut(ctx context.Context, at *provider.Endpoint) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &Fault{Kind: Failed, Again: true, Err: at.Wrong("with a stream that ends before the answer does")}
}

// faultOf returns the fault of a request that failed without an answer, or the error of ctx.
func faultOf(ctx context.Context, at *provider.Endpoint, err error) error {
	if _, is := errors.AsType[*Fault](err); is {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f := &Fault{Kind: Failed, Err: at.Explain(ctx, err)}
	_, setting := errors.AsType[*provider.SettingError](f.Err)
	f.Again = !setting && !errors.Is(err, context.DeadlineExceeded) // after a timeout it would time out again
	return f
}

// reply is a provider's error. Within a stream it may have no status.
type reply struct {
	status int
	body   []byte
	after  time.Duration
}

// errorBody is what is read of an error. Some servers have its fields outermost.
type errorBody struct {
	Error   json.RawMessage `json:"error"`
	Message text            `json:"message"`
	Detail  text            `json:"detail"`
	Type    text            `json:"type"`
	Code    json.RawMessage `json:"code"`
}

// innermost returns the fields of an error, whose message may be all that there is.
func innermost(raw []byte) (e errorBody) {
	if json.Unmarshal(raw, &e) != nil {
		e.Message = text(textOf(raw))
		return e
	}
	if isSet(e.Error) {
		inner := innermost(e.Error)
		inner.Message = cmp.Or(inner.Message, e.Message)
		return inner
	}
	e.Message = cmp.Or(e.Message, e.Detail)
	return e
}

// statusOf returns the status that an error within a stream names or means.
func (e errorBody) status() int {
	if code, err := strconv.Atoi(strings.Trim(string(e.Code), `"`)); err == nil && code >= 400 && code < 600 {
		return code
	}
	kind := strings.ToLower(string(e.Type) + " " + string(e.Code))
	for _, means := range []struct {
		part   string
		status int
	}{{"rate_limit", http.StatusTooManyRequests}, {"overloaded", http.StatusServiceUnavailable},
		{"insufficient_quota", http.StatusTooManyRequests}, {"invalid_request", http.StatusBadRequest}} {
		if strings.Contains(kind, means.part) {
			return means.status
		}
	}
	return http.StatusInternalServerError
}

// fault returns the fault that an error is, or the error of ctx.
func (r reply) fault(ctx context.Context, at *provider.Endpoint) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := innermost(r.body)
	status := cmp.Or(r.status, e.status())
	words := cmp.Or(string(e.Message), string(r.body))
	f := &Fault{Kind: Failed, After: r.after,
		Err: at.Explain(ctx, &openai.APIError{HTTPStatusCode: status, Message: words})}
	switch {
	case llm.IsOverflow(status, []byte(words)), llm.IsOverflow(status, r.body):
		f.Kind = Overflow
	case status == http.StatusPaymentRequired || hasNoCredit(string(r.body)):
		f.Kind = Credits
		f.Err = provider.Told(f.Err, "the account at the %s provider has no credit left (status %d)", at.Kind, status)
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == overloaded:
		f.Again, f.Limited = true, true
	default:
		f.Again = status >= http.StatusInternalServerError || status == http.StatusRequestTimeout ||
			status == http.StatusConflict
	}
	return f
}

// overloaded is the status by which Anthropic says that it takes no requests for now.
const overloaded = 529

// hasNoCredit reports whether an error says that the account has no credit. Gemini has one of the wordings for limits
// that pass.
func hasNoCredit(body string) bool {
	return strings.Contains(body, "insufficient_quota") || strings.Contains(body, "credit balance") ||
		strings.Contains(body, "exceeded your current quota") && !strings.Contains(body, "RESOURCE_EXHAUSTED")
}
