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
	Content                   // the provider refuses the prompt's content
)

// Fault is a failure of a provider. Its text is for the operator; Public is for organizations.
type Fault struct {
	Kind    FaultKind
	Status  int           // HTTP status of the answer; 0 if there was none
	Words   string        // the provider's words on one line of at most 300 characters, without its key and its address
	Again   bool          // the same request may succeed later
	Key     bool          // the provider does not accept the server's key
	Limited bool          // with Again: not at once, because the provider limits requests
	After   time.Duration // the pause that the provider asks for; 0 if none
	Err     error
}

func (f *Fault) Error() string { return f.Err.Error() }

func (f *Fault) Unwrap() error { return f.Err }

// Public returns the text of the failure for organizations.
func (f *Fault) Public() string { return provider.Public(f.Err) }

// AnswerStatus returns the HTTP status with which Loci answers a request after this failure, as in Letta.
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

// withheld returns the fault for an answer that the model refused or a filter withheld, with the provider's words.
func withheld(at *provider.Endpoint, words string) *Fault {
	words = cmp.Or(words, "content filter")
	return &Fault{Kind: Content, Status: http.StatusOK, Words: wordsFor(at, words),
		Err: provider.Told(fmt.Errorf("the model %s at %s refused to answer, or a content filter withheld its answer (%s)",
			at.Model, at.Host(), at.Clean(words)), "the model refused to answer, or a content filter withheld its answer")}
}

// broken returns the fault for an answer that cannot be used. A second answer to the same prompt may be usable.
func broken(at *provider.Endpoint, how string) *Fault {
	return &Fault{Kind: Broken, Again: true, Err: at.Wrong("%s", how)}
}

// maxCalls is the most tool calls in an answer. Models make at most a few dozen.
const maxCalls = 512

// tooManyCalls returns the fault for an answer with more than maxCalls.
func tooManyCalls(at *provider.Endpoint) *Fault {
	f := broken(at, fmt.Sprintf("with more than %d calls of tools in one answer", maxCalls))
	f.Again = false
	return f
}

// cut returns the fault for a stream that ends before its answer does, or ctx's error.
func cut(ctx context.Context, at *provider.Endpoint) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return &Fault{Kind: Failed, Again: true, Err: at.Wrong("with a stream that ends before the answer does")}
}

// faultOf returns the fault for a request that failed without an answer, or ctx's error.
func faultOf(ctx context.Context, endpoint *provider.Endpoint, err error) error {
	if _, is := errors.AsType[*Fault](err); is {
		return err
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, provider.ErrTooBig) { // a second answer would be as long
		return &Fault{Kind: Broken, Err: endpoint.Explain(ctx, err)}
	}
	f := &Fault{Kind: Failed, Err: endpoint.Explain(ctx, err)}
	_, setting := errors.AsType[*provider.SettingError](f.Err)
	f.Again = !setting && !errors.Is(err, context.DeadlineExceeded) // after a timeout it would time out again
	return f
}

// reply is a provider's error. Within a stream it may lack a status.
type reply struct {
	status int
	body   []byte
	after  time.Duration
}

// errorBody has the fields that are read of an error. Some servers send them at the top level.
type errorBody struct {
	Error   json.RawMessage `json:"error"`
	Message text            `json:"message"`
	Detail  text            `json:"detail"`
	Type    text            `json:"type"`
	Code    json.RawMessage `json:"code"`
}

// innermost returns an error's fields. There may be nothing but a message.
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

// baseResp is where MiniMax reports an error, in an answer with status 200.
type baseResp struct {
	Code    int  `json:"status_code"`
	Message text `json:"status_msg"`
}

// status returns the HTTP status that the error corresponds to.
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

// status returns the HTTP status that an error within a stream names or corresponds to.
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

// fault returns the fault for the error, or ctx's error.
func (r reply) fault(ctx context.Context, endpoint *provider.Endpoint) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := innermost(r.body)
	status := cmp.Or(r.status, e.status())
	words := cmp.Or(string(e.Message), string(r.body))
	f := &Fault{Kind: Failed, Status: status, After: r.after, Words: wordsFor(endpoint, words),
		Err: endpoint.Explain(ctx, &openai.APIError{HTTPStatusCode: status, Message: words})}
	switch body := string(r.body); {
	case llm.IsOverflow(status, []byte(words)), llm.IsOverflow(status, r.body):
		f.Kind = Overflow
	case isFlaggedAlone(status, body):
		f.refuse(endpoint, words)
	case status == http.StatusPaymentRequired || hasNoCredit(body):
		f.Kind = Credits
		f.Err = provider.Told(f.Err, "the account at the %s provider has no credit left (status %d)", endpoint.Kind, status)
	case isLimit(status):
		f.Again, f.Limited = true, true
	case status == http.StatusBadRequest && aboutKey.MatchString(body):
		f.Key, f.Err = true, endpoint.Forbidden(status, words)
	case isContent(status, body):
		f.refuse(endpoint, words)
	default:
		f.Again = status >= http.StatusInternalServerError || status == http.StatusRequestTimeout ||
			status == http.StatusConflict
	}
	return f
}

// refuse turns the fault into a refusal of the prompt's content.
func (f *Fault) refuse(at *provider.Endpoint, words string) {
	f.Kind = Content
	f.Again = f.Status >= http.StatusInternalServerError || f.Status == http.StatusConflict
	f.Err = provider.Told(fmt.Errorf("the %s provider at %s refuses the prompt (status %d: %s)", at.Kind, at.Host(),
		f.Status, at.Clean(words)), "the %s provider refuses the prompt (status %d)", at.Kind, f.Status)
}

// wordsFor returns a provider's words for organizations, without the provider's address.
func wordsFor(at *provider.Endpoint, words string) string {
	return at.Clean(strings.ReplaceAll(words, at.Host(), "[host]"))
}
