package embed

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/sashabaranov/go-openai"
)

// maxReasonRunes is how much of a provider's words an error repeats.
const maxReasonRunes = 300

// tooLong recognises a complaint about a text's length. The words differ: "maximum context length is 8192 tokens" (OpenAI, vLLM), "must
// have less than 512 tokens" (text-embeddings-inference), "input length exceeds the context length" (Ollama), "input is too large to
// process" (llama.cpp, as status 500).
var tooLong = regexp.MustCompile(`(?i)too (large|long)|(context|input|sequence|prompt) (length|size|window)|` +
	`maximum .*(tokens|length)|less than \d+ tokens`)

// refusal is a provider's answer to a request that it will never take as it is, though it may take parts of it.
type refusal struct {
	reason  string
	tooLong bool
}

func (r *refusal) Error() string { return r.reason }

// refuses tells whether an answer is a refusal of this request's texts.
func refuses(status int, reason string) bool {
	switch status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	case http.StatusInternalServerError:
		return tooLong.MatchString(reason)
	}
	return false
}

// SettingError says that the endpoint's answer will stay wrong until a setting is changed; its text names the setting.
type SettingError struct{ Reason string }

func (e *SettingError) Error() string { return e.Reason }

func setting(format string, args ...any) error {
	return &SettingError{Reason: fmt.Sprintf(format, args...)}
}

// explain turns go-openai's error into a *refusal, the context's error, or a sentence that says what to do.
func (o *OpenAI) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	status, reason := o.answered(err)
	switch {
	case status == 0:
		return o.unanswered(err)
	case refuses(status, reason):
		return &refusal{
			reason:  fmt.Sprintf("%s (status %d)", reason, status),
			tooLong: status == http.StatusRequestEntityTooLarge || tooLong.MatchString(reason),
		}
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return setting("the embedding provider at %s does not accept the key (status %d): check LOCI_EMBEDDING_API_KEY", o.host(), status)
	case status == http.StatusNotFound:
		return setting("the embedding provider at %s does not know the path or the model (status 404: %s): check LOCI_EMBEDDING_BASE_URL, "+
			"which mostly ends in /v1, and LOCI_EMBEDDING_MODEL (%s)", o.host(), reason, o.config.Model)
	case status == http.StatusTooManyRequests:
		return fmt.Errorf("the embedding provider at %s takes no more requests for now (status 429: %s): try again later, "+
			"or raise the limit of the key in LOCI_EMBEDDING_API_KEY", o.host(), reason)
	}
	return fmt.Errorf("the embedding provider at %s fails (status %d: %s): try again later", o.host(), status, reason)
}

// answered returns the status and the words of a provider's error, or 0 if it gave none.
func (o *OpenAI) answered(err error) (status int, reason string) {
	var api *openai.APIError
	if errors.As(err, &api) && api.HTTPStatusCode != 0 {
		return api.HTTPStatusCode, o.clean(api.Message)
	}
	if request, ok := errors.AsType[*openai.RequestError](err); ok {
		return request.HTTPStatusCode, o.clean(string(request.Body))
	}
	return 0, ""
}

// unanswered explains why there is no answer, or none that can be read.
func (o *OpenAI) unanswered(err error) error {
	var transport *url.Error
	switch {
	case errors.Is(err, errRedirect):
		return setting("the embedding provider at %s redirects elsewhere: set LOCI_EMBEDDING_BASE_URL to where it leads", o.host())
	case errors.Is(err, errTooBig):
		return o.wrong("with more than %d MiB", maxAnswerBytes>>20)
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the embedding provider at %s does not answer within %v: %w", o.host(), o.config.Timeout, context.DeadlineExceeded)
	case errors.As(err, &transport):
		return fmt.Errorf("the embedding provider at %s cannot be reached (%s): check LOCI_EMBEDDING_BASE_URL, and that it runs",
			o.host(), o.clean(transport.Err.Error()))
	}
	return o.wrong("with something else than embeddings (%s)", o.clean(err.Error()))
}

// wrong is the error of a provider that answers what it should not.
func (o *OpenAI) wrong(format string, args ...any) error {
	return fmt.Errorf("the embedding provider at %s answers %s: check LOCI_EMBEDDING_BASE_URL and LOCI_EMBEDDING_MODEL (%s)",
		o.host(), fmt.Sprintf(format, args...), o.config.Model)
}

// failure words an error that ends a call: a refusal that got here is one of everything.
func (o *OpenAI) failure(err error) error {
	if no, ok := errors.AsType[*refusal](err); ok {
		return setting("the embedding provider at %s refuses every text: %s: check LOCI_EMBEDDING_MODEL (%s) and LOCI_EMBEDDING_DIMENSIONS",
			o.host(), no.reason, o.config.Model)
	}
	if err == context.Canceled || err == context.DeadlineExceeded { //nolint:errorlint // the caller's own, said bare
		return fmt.Errorf("embed with %s: %w", o.config.Model, err)
	}
	return err
}

func (o *OpenAI) host() string {
	base, err := url.Parse(o.config.BaseURL)
	if err != nil {
		return "its address"
	}
	return base.Host
}

// clean makes a stranger's words fit for an error: one line, not endless, valid UTF-8, without our key.
func (o *OpenAI) clean(words string) string {
	words = strings.Join(strings.Fields(strings.ToValidUTF8(words, "\uFFFD")), " ")
	if o.config.APIKey != "" {
		words = strings.ReplaceAll(words, o.config.APIKey, "[key]")
	}
	if utf8.RuneCountInString(words) > maxReasonRunes {
		words = string([]rune(words)[:maxReasonRunes]) + "…"
	}
	return words
}
