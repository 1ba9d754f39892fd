// Package provider sends requests to a model's endpoint that speaks OpenAI's protocol until they are answered for good, and says in
// sentences why they are not.
package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sashabaranov/go-openai"
)

// maxReasonRunes is how much of a provider's words an error repeats.
const maxReasonRunes = 300

// Endpoint says where a model is and how it is asked. It is not changed once Client has been called.
type Endpoint struct {
	Kind    string // what an error calls it: embedding, language model
	Setting string // how the names of its settings begin: LOCI_EMBEDDING for LOCI_EMBEDDING_BASE_URL, …_API_KEY and …_MODEL
	Answers string // what it should answer with: embeddings

	BaseURL string // empty means OpenAI's own
	APIKey  string // empty where the server asks for none
	Model   string

	HTTP           *http.Client // nil means a client of its own; redirects are never followed, its own timeout is not used
	Attempts       int          // how often a request is sent until it is answered
	Timeout        time.Duration
	MaxAnswerBytes int64

	// Refuses says that an answer will stay what it is, though its status is one that mostly passes.
	Refuses func(status int, body string) bool

	Wait func(context.Context, time.Duration) error // between attempts; nil means to sleep
	Now  func() time.Time                           // nil means time.Now
}

// SettingError says that the endpoint's answer will stay wrong until a setting is changed; its text names the setting.
type SettingError struct{ Reason string }

func (e *SettingError) Error() string { return e.Reason }

func setting(format string, args ...any) error {
	return &SettingError{Reason: fmt.Sprintf(format, args...)}
}

// Client checks the settings and fills in what they leave open; it sends nothing. An error names the setting to change.
func (e *Endpoint) Client() (*openai.Client, error) {
	e.BaseURL = strings.TrimRight(cmp.Or(e.BaseURL, "https://api.openai.com/v1"), "/")
	e.HTTP = cmp.Or(e.HTTP, &http.Client{})
	if e.Wait == nil {
		e.Wait = sleep
	}
	if e.Now == nil {
		e.Now = time.Now
	}
	base, err := url.Parse(e.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%s_BASE_URL is not a URL such as http://localhost:11434/v1", e.Setting)
	}
	if strings.TrimSpace(e.Model) == "" {
		return nil, fmt.Errorf("%s_MODEL is empty: name the model that the %s provider serves", e.Setting, e.Kind)
	}
	if strings.ContainsFunc(e.APIKey, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return nil, fmt.Errorf("%s_API_KEY has a line break or another character that no key has: set the key alone", e.Setting)
	}
	config := openai.DefaultConfig(e.APIKey)
	config.BaseURL = e.BaseURL
	config.HTTPClient = e.httpClient()
	return openai.NewClientWithConfig(config), nil
}

// Explain turns go-openai's error into the context's, or into a sentence that says what to do: a *SettingError where asking again
// cannot help.
func (e *Endpoint) Explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	status, reason := e.Answered(err)
	switch status {
	case 0:
		return e.unanswered(err)
	case http.StatusUnauthorized, http.StatusForbidden:
		return setting("the %s provider at %s does not accept the key (status %d): check %s_API_KEY", e.Kind, e.Host(), status, e.Setting)
	case http.StatusNotFound:
		return setting("the %s provider at %s does not know the path or the model (status 404: %s): check %s_BASE_URL, "+
			"which mostly ends in /v1, and %s_MODEL (%s)", e.Kind, e.Host(), reason, e.Setting, e.Setting, e.Model)
	case http.StatusTooManyRequests:
		return fmt.Errorf("the %s provider at %s takes no more requests for now (status 429: %s): try again later, "+
			"or raise the limit of the key in %s_API_KEY", e.Kind, e.Host(), reason, e.Setting)
	}
	return fmt.Errorf("the %s provider at %s fails (status %d: %s): try again later", e.Kind, e.Host(), status, reason)
}

// Answered returns the status and the words of a provider's error, or 0 if it gave none.
func (e *Endpoint) Answered(err error) (status int, reason string) {
	var api *openai.APIError
	if errors.As(err, &api) && api.HTTPStatusCode != 0 {
		return api.HTTPStatusCode, e.Clean(api.Message)
	}
	if request, ok := errors.AsType[*openai.RequestError](err); ok {
		return request.HTTPStatusCode, e.Clean(string(request.Body))
	}
	return 0, ""
}

// unanswered explains why there is no answer, or none that can be read.
func (e *Endpoint) unanswered(err error) error {
	var transport *url.Error
	switch {
	case errors.Is(err, errRedirect):
		return setting("the %s provider at %s redirects elsewhere: set %s_BASE_URL to where it leads", e.Kind, e.Host(), e.Setting)
	case errors.Is(err, errTooBig):
		return e.Wrong("with more than %d MiB", e.MaxAnswerBytes>>20)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the %s provider at %s does not answer within %v: %w", e.Kind, e.Host(), e.Timeout, context.DeadlineExceeded)
	case errors.As(err, &transport):
		return fmt.Errorf("the %s provider at %s cannot be reached (%s): check %s_BASE_URL, and that it runs",
			e.Kind, e.Host(), e.Clean(transport.Err.Error()), e.Setting)
	}
	return e.Wrong("with something else than %s (%s)", e.Answers, e.Clean(err.Error()))
}

// Wrong is the error of a provider that answers what it should not.
func (e *Endpoint) Wrong(format string, args ...any) error {
	return fmt.Errorf("the %s provider at %s answers %s: check %s_BASE_URL and %s_MODEL (%s)",
		e.Kind, e.Host(), fmt.Sprintf(format, args...), e.Setting, e.Setting, e.Model)
}

// Host is the endpoint's host and port, fit for an error.
func (e *Endpoint) Host() string {
	base, err := url.Parse(e.BaseURL)
	if err != nil {
		return "its address"
	}
	return base.Host
}

// Clean makes a stranger's words fit for an error: one line, not endless, valid UTF-8, without our key.
func (e *Endpoint) Clean(words string) string {
	words = strings.Join(strings.Fields(strings.ToValidUTF8(words, "\uFFFD")), " ")
	if e.APIKey != "" {
		words = strings.ReplaceAll(words, e.APIKey, "[key]")
	}
	if utf8.RuneCountInString(words) > maxReasonRunes {
		words = string([]rune(words)[:maxReasonRunes]) + "…"
	}
	return words
}
