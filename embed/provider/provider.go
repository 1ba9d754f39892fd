// Package provider is a client for a model's endpoint with OpenAI's protocol. It retries requests, limits answers, and
// turns failures into sentences that say what to do.
// Each file uses only the files named before it: public.go words failures for organizations, stream.go limits streams,
// retry.go sends requests, and provider.go describes an endpoint.
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

// maxReasonRunes limits how much of a provider's message an error repeats.
const maxReasonRunes = 300

// minSecretBytes is the least length of a key that errors must not repeat. Shorter keys are for servers that need none;
// they may be parts of words.
const minSecretBytes = 8

// Endpoint has the address and the settings of a model. Its fields do not change after Client has been called.
type Endpoint struct {
	Kind    string // in errors: embedding, language model
	Setting string // prefix of its settings' names: LOCI_EMBEDDING for LOCI_EMBEDDING_BASE_URL, …_API_KEY and …_MODEL
	ModelOf string // in errors: the setting that names the model, such as "the agent's model"; empty: the setting …_MODEL
	Answers string // in errors: the expected content of an answer, such as "embeddings"

	BaseURL string // empty: OpenAI's
	APIKey  string // empty: the server needs none
	Model   string

	HTTP           *http.Client  // nil: http.Client{}; its Timeout is not used, and redirects are not followed
	Attempts       int           // most attempts of a request
	Timeout        time.Duration // time limit of one attempt
	MaxAnswerBytes int64         // most bytes of the contents of a stream's events

	// Streams leaves the body of a good answer to be read as it arrives. Timeout then limits the wait for the beginning of
	// the answer and for each further piece.
	Streams bool

	// Refuses reports whether an answer refuses the request itself, even if its status, such as 500, is usually transient.
	Refuses func(status int, body string) bool

	FirstPause time.Duration // before the second attempt, doubled before each further one up to 8 s; 0: 500 ms
}

// SettingError is a failure that lasts until a setting is changed; its text names the setting.
type SettingError struct{ Reason string }

func (e *SettingError) Error() string { return e.Reason }

// Settingf returns a SettingError.
func Settingf(format string, args ...any) error {
	return &SettingError{Reason: fmt.Sprintf(format, args...)}
}

// Client checks the settings and sets defaults; it sends nothing. An error names the setting to change.
func (e *Endpoint) Client() (*openai.Client, error) {
	e.BaseURL = strings.TrimRight(cmp.Or(e.BaseURL, "https://api.openai.com/v1"), "/")
	e.HTTP = cmp.Or(e.HTTP, &http.Client{})
	base, err := url.Parse(e.BaseURL)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return nil, fmt.Errorf("%s_BASE_URL is not a URL such as http://localhost:11434/v1", e.Setting)
	}
	if strings.TrimSpace(e.Model) == "" {
		return nil, fmt.Errorf("%s_MODEL is empty: name the model that the %s provider serves", e.Setting, e.Kind)
	}
	if strings.ContainsFunc(e.APIKey, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }) {
		return nil, fmt.Errorf("%s_API_KEY has a line break or another character that no key has: set the key alone",
			e.Setting)
	}
	config := openai.DefaultConfig(e.APIKey)
	config.BaseURL = e.BaseURL
	config.HTTPClient = e.HTTPClient()
	return openai.NewClientWithConfig(config), nil
}

// Explain turns go-openai's error into the context's error, or into a sentence that says what to do. It is a
// *SettingError if asking again cannot help. Public returns the part that organizations may read.
func (e *Endpoint) Explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	status, reason := e.Answered(err)
	switch status {
	case 0:
		return e.unanswered(err)
	case http.StatusUnauthorized, http.StatusForbidden:
		return e.Forbidden(status, reason)
	case http.StatusNotFound:
		return Told(Settingf("the %s provider at %s does not know the path or the model (status 404: %s): check "+
			"%s_BASE_URL, which mostly ends in /v1, and %s (%s)", e.Kind, e.Host(), reason, e.Setting, e.modelOf(), e.Model),
			"the %s provider does not know the model (status 404)", e.Kind)
	case http.StatusTooManyRequests:
		return Told(fmt.Errorf("the %s provider at %s takes no more requests for now (status 429: %s): try again later, "+
			"or raise the limit of the key in %s_API_KEY", e.Kind, e.Host(), reason, e.Setting),
			"the %s provider takes no more requests for now (status 429)", e.Kind)
	}
	return Told(fmt.Errorf("the %s provider at %s fails (status %d: %s): try again later", e.Kind, e.Host(), status,
		reason), "the %s provider fails (status %d)", e.Kind, status)
}

// Forbidden returns the error for an answer that says that the provider does not accept the key, or that the key has no
// right to the request.
func (e *Endpoint) Forbidden(status int, reason string) error {
	answer := fmt.Sprintf("status %d", status)
	if reason = e.Clean(reason); strings.Trim(reason, "{} ") != "" {
		answer += ": " + reason
	}
	if status == http.StatusForbidden {
		return Told(Settingf("the %s provider at %s forbids the request (%s): check %s_API_KEY, and what it may be used for",
			e.Kind, e.Host(), answer, e.Setting), "the %s provider forbids the request (status %d)", e.Kind, status)
	}
	return Told(Settingf("the %s provider at %s does not accept the key (%s): check %s_API_KEY", e.Kind, e.Host(), answer,
		e.Setting), "the %s provider does not accept the server's key (status %d)", e.Kind, status)
}

// Answered returns the status and the message of a provider's error, or 0 if there was no answer.
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

// unanswered returns the error for a request without an answer, or with an answer that cannot be read.
func (e *Endpoint) unanswered(err error) error {
	var transport *url.Error
	switch {
	case errors.Is(err, errRedirect):
		return Told(Settingf("the %s provider at %s redirects elsewhere: set %s_BASE_URL to where it leads", e.Kind,
			e.Host(), e.Setting), "the %s provider redirects elsewhere", e.Kind)
	case errors.Is(err, ErrTooBig):
		return e.Wrong("with more than the %d bytes that an answer may have", e.MaxAnswerBytes)
	case errors.Is(err, context.DeadlineExceeded):
		return Told(fmt.Errorf("the %s provider at %s does not answer within %v: %w", e.Kind, e.Host(), e.Timeout,
			context.DeadlineExceeded), "the %s provider does not answer within %v", e.Kind, e.Timeout)
	case errors.As(err, &transport):
		return Told(fmt.Errorf("the %s provider at %s cannot be reached (%s): check %s_BASE_URL, and that it runs",
			e.Kind, e.Host(), e.Clean(transport.Err.Error()), e.Setting), "the %s provider cannot be reached", e.Kind)
	}
	return e.wrong("with something else than "+e.Answers, " ("+e.Clean(err.Error())+")")
}

// Wrong returns the error for a provider that answers with something unusable. Organizations read it too, so it repeats
// no words of the provider.
func (e *Endpoint) Wrong(format string, args ...any) error {
	return e.wrong(fmt.Sprintf(format, args...), "")
}

// wrong is Wrong with a detail for the operator.
func (e *Endpoint) wrong(how, detail string) error {
	return Told(fmt.Errorf("the %s provider at %s answers %s%s: check %s_BASE_URL and %s (%s)",
		e.Kind, e.Host(), how, detail, e.Setting, e.modelOf(), e.Model), "the %s provider answers %s", e.Kind, how)
}

func (e *Endpoint) modelOf() string { return cmp.Or(e.ModelOf, e.Setting+"_MODEL") }

// Host returns the endpoint's host and port.
func (e *Endpoint) Host() string {
	base, err := url.Parse(e.BaseURL)
	if err != nil {
		return "its address"
	}
	return base.Host
}

// Clean makes a provider's message fit for an error: one line of at most 300 characters, valid UTF-8, without the API
// key.
func (e *Endpoint) Clean(words string) string {
	words = strings.Join(strings.Fields(strings.ToValidUTF8(words, "\uFFFD")), " ")
	if len(e.APIKey) >= minSecretBytes {
		words = strings.ReplaceAll(words, e.APIKey, "[key]")
	}
	if utf8.RuneCountInString(words) > maxReasonRunes {
		words = string([]rune(words)[:maxReasonRunes]) + "…"
	}
	return words
}
