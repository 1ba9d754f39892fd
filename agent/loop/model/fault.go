package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	Content                   // the provider refuses the prompt for what it says
)

// Fault is a failure of a provider. Its text is the operator's; Public says what organizations read.
type Fault struct {
	Kind    FaultKind
	Status  int           // of the answer; 0 if there was none
	Words   string        // the provider's own: one line of at most 300 characters, without its key and its address
	Again   bool          // the same request may succeed later
	Key     bool          // the provider does not accept the server's key
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

// AnswerStatus returns the status by which a request is answered for which the provider failed, as Letta has it.
func (f *Fault) AnswerStatus() int {
	switch {
	case f.Kind == Content || f.Kind == Overflow:
		return http.StatusBadRequest
	case f.Kind == Credits:
		return http.StatusPaymentRequired
	case f.Key || f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden:
		return http.StatusUnauthorized
	case f.Status == http.StatusTooManyRequests:
		return http.StatusTooManyRequests
	case f.Status >= http.StatusBadRequest && f.Status < http.StatusInternalServerError &&
		f.Status != http.StatusRequestTimeout:
		return http.StatusBadRequest
	case f.Status == http.StatusRequestTimeout || errors.Is(f.Err, context.DeadlineExceeded):
		return http.StatusGatewayTimeout
	}
	return http.StatusInternalServerError
}

// withheld returns the fault of an answer that the model refused, or that a filter withheld, with the provider's words.
func withheld(at *provider.Endpoint, words string) *Fault {
	words = cmp.Or(words, "content filter")
	return &Fault{Kind: Content, Status: http.StatusOK, Words: wordsFor(at, words),
		Err: provider.Told(fmt.Errorf("the model %s at %s refused to answer, or a content filter withheld its answer (%s)",
			at.Model, at.Host(), at.Clean(words)), "the model refused to answer, or a content filter withheld its answer")}
}

// broken returns the fault of an answer that cannot be used. A second answer to the same prompt may be a good one.
func broken(at *provider.Endpoint, how string) *Fault {
	return &Fault{Kind: Broken, Again: true, Err: at.Wrong("%s", how)}
}

// maxCalls is the most calls of tools that an answer may have. Models make at most some dozens.
const maxCalls = 512

// tooManyCalls returns the fault of an answer with more calls than maxCalls.
func tooManyCalls(at *provider.Endpoint) *Fault {
	f := broken(at, fmt.Sprintf("with more than %d calls of tools in one answer", maxCalls))
	f.Again = false
	return f
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
	if errors.Is(err, provider.ErrTooBig) { // a second answer would be as long
		return &Fault{Kind: Broken, Err: at.Explain(ctx, err)}
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

// baseResp is where MiniMax has an error, in an answer with status 200.
type baseResp struct {
	Code    int  `json:"status_code"`
	Message text `json:"status_msg"`
}

// status returns the status that the error means.
func (b baseResp) status() int {
	switch b.Code {
	case 1002, 1039, 1041:
		return http.StatusTooManyRequests
	case 1004, 2049:
		return http.StatusUnauthorized
	case 1008:
		return http.StatusPaymentRequired
	case 1026, 1027, 2013:
		return http.StatusBadRequest
	}
	return http.StatusInternalServerError
}

// status returns the status that an error within a stream names or means.
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
	f := &Fault{Kind: Failed, Status: status, After: r.after, Words: wordsFor(at, words),
		Err: at.Explain(ctx, &openai.APIError{HTTPStatusCode: status, Message: words})}
	switch said := string(r.body); {
	case llm.IsOverflow(status, []byte(words)), llm.IsOverflow(status, r.body):
		f.Kind = Overflow
	case isFlaggedAlone(status, said):
		f.refuse(at, words)
	case status == http.StatusPaymentRequired || hasNoCredit(said):
		f.Kind = Credits
		f.Err = provider.Told(f.Err, "the account at the %s provider has no credit left (status %d)", at.Kind, status)
	case isLimit(status):
		f.Again, f.Limited = true, true
	case status == http.StatusBadRequest && aboutKey.MatchString(said):
		f.Key, f.Err = true, at.Forbidden(status, words)
	case isContent(status, said):
		f.refuse(at, words)
	default:
		f.Again = status >= http.StatusInternalServerError || status == http.StatusRequestTimeout ||
			status == http.StatusConflict
	}
	return f
}

// refuse makes the fault one of what the prompt says.
func (f *Fault) refuse(at *provider.Endpoint, words string) {
	f.Kind = Content
	f.Again = f.Status >= http.StatusInternalServerError || f.Status == http.StatusConflict
	f.Err = provider.Told(fmt.Errorf("the %s provider at %s refuses the prompt (status %d: %s)", at.Kind, at.Host(),
		f.Status, at.Clean(words)), "the %s provider refuses the prompt (status %d)", at.Kind, f.Status)
}

// wordsFor returns a provider's words for organizations, which do not learn its address.
func wordsFor(at *provider.Endpoint, words string) string {
	return at.Clean(strings.ReplaceAll(words, at.Host(), "[host]"))
}
