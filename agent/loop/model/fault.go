package model

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
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
	case f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden:
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
	switch {
	case llm.IsOverflow(status, []byte(words)), llm.IsOverflow(status, r.body):
		f.Kind = Overflow
	case status == http.StatusPaymentRequired || hasNoCredit(string(r.body)):
		f.Kind = Credits
		f.Err = provider.Told(f.Err, "the account at the %s provider has no credit left (status %d)", at.Kind, status)
	case isLimit(status):
		f.Again, f.Limited = true, true
	case isContent(status, string(r.body)):
		f.Kind = Content
		f.Again = status >= http.StatusInternalServerError || status == http.StatusConflict
		f.Err = provider.Told(fmt.Errorf("the %s provider at %s refuses the prompt (status %d: %s)", at.Kind, at.Host(),
			status, at.Clean(words)), "the %s provider refuses the prompt (status %d)", at.Kind, status)
	default:
		f.Again = status >= http.StatusInternalServerError || status == http.StatusRequestTimeout ||
			status == http.StatusConflict
	}
	return f
}

// wordsFor returns a provider's words for organizations, which do not learn its address.
func wordsFor(at *provider.Endpoint, words string) string {
	return at.Clean(strings.ReplaceAll(words, at.Host(), "[host]"))
}

// IsOverflow reports whether an answer with a status and some words says that a prompt is longer than the model's
// window.
func IsOverflow(status int, words string) bool { return llm.IsOverflow(status, []byte(words)) }

// IsContent reports whether an answer with a status and some words refuses a prompt for what it says, and neither for
// its size nor for what is no part of it: a key, the name of a model, a limit.
func IsContent(status int, words string) bool {
	return !IsOverflow(status, words) && !hasNoCredit(words) && isContent(status, words)
}

func isContent(status int, words string) bool {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType,
		http.StatusUnprocessableEntity:
		return isFlagged.MatchString(words) || !aboutOthers.MatchString(words)
	case http.StatusUnavailableForLegalReasons:
		return true
	case http.StatusUnauthorized, http.StatusPaymentRequired:
		return false
	}
	return status >= http.StatusBadRequest && !isLimit(status) && (isFlagged.MatchString(words) ||
		!aboutOthers.MatchString(words) && aboutMedia.MatchString(words))
}

// isLimit reports whether a provider answers with a status that it takes no requests for now.
func isLimit(status int) bool {
	return status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable || status == overloaded
}

// isFlagged matches the words of providers whose moderation refuses a text, with whatever status.
var isFlagged = regexp.MustCompile(`(?i)\bflagged|moderation|content[ _-]?(?:policy|filter|management)|` +
	`(?:usage|safety|acceptable[ _]use)[ _]polic|violat\w+ [^.]{0,40}\bpolic`)

// aboutMedia matches the words of providers that cannot use an image or another medium of a prompt.
var aboutMedia = regexp.MustCompile(`(?i)\b(?:image|audio|video|picture|pdf|media)s?[ _]?(?:input|url|content|data)?` +
	`\b[^.]{0,60}(?:cannot|could not|can't|unable|invalid|unsupported|not support|too (?:large|big)|exceed|corrupt|` +
	`fail)|(?:cannot|could not|can't|unable|invalid|unsupported|not? [^.]{0,20}support|too (?:large|big)|exceed|` +
	`corrupt|fail)[^.]{0,60}\b(?:image|audio|video|picture|pdf|media)s?\b|supports? (?:image|audio|video|vision|pdf|file)`)

// aboutOthers matches the words of providers that answer 400 for a key, the name of a model or a limit.
var aboutOthers = regexp.MustCompile(`(?i)api[ _-]?key|authenticat|unauthorized|permission[ _]denied|` +
	`\bmodel\b[^.]{0,80}(?:does not exist|not exist|not found|is not a valid)|(?:invalid|unknown|unsupported)[ _]model|` +
	`model_not_found|not a valid model|rate[ _-]?limit|too many requests|quota|billing`)

// overloaded is the status by which Anthropic says that it takes no requests for now.
const overloaded = 529

// hasNoCredit reports whether an error says that the account has no credit. Gemini has one of the wordings for limits
// that pass.
func hasNoCredit(body string) bool {
	return strings.Contains(body, "insufficient_quota") || strings.Contains(body, "credit balance") ||
		strings.Contains(body, "exceeded your current quota") && !strings.Contains(body, "RESOURCE_EXHAUSTED")
}
