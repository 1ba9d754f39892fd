package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"

	"github.com/loci-memory/loci/embed/provider"
)

// tooLong matches complaints about a text's length. The words differ: "maximum context length is 8192 tokens" (OpenAI,
// vLLM), "must have less than 512 tokens" (text-embeddings-inference), "input length exceeds the context length"
// (Ollama), "input is too large to process" (llama.cpp, as status 500).
var tooLong = regexp.MustCompile(`(?i)too (large|long)|(context|input|sequence|prompt) (length|size|window)|` +
	`maximum .*(tokens|length)|less than \d+ tokens`)

// refusal is a provider's final refusal of a request. The provider may still accept parts of it.
type refusal struct {
	reason  string // in the provider's words
	public  string
	tooLong bool
}

func (r *refusal) Error() string { return r.reason }

// refuses reports whether an answer refuses the texts of this request.
func refuses(status int, reason string) bool {
	return status == http.StatusBadRequest || status == http.StatusRequestEntityTooLarge ||
		status == http.StatusUnprocessableEntity ||
		status == http.StatusInternalServerError && tooLong.MatchString(reason)
}

// SettingError is a failure that lasts until a setting is changed; its text names the setting.
type SettingError = provider.SettingError

// explain turns go-openai's error into a *refusal, the context's error, or a sentence that says what to do.
func (o *OpenAI) explain(ctx context.Context, err error) error {
	if status, reason := o.at.Answered(err); refuses(status, reason) && ctx.Err() == nil {
		no := &refusal{
			reason:  fmt.Sprintf("%s (status %d)", reason, status),
			public:  fmt.Sprintf("status %d", status),
			tooLong: status == http.StatusRequestEntityTooLarge || tooLong.MatchString(reason),
		}
		if no.tooLong {
			no.public = "too long for the model, " + no.public
		}
		return no
	}
	return o.at.Explain(ctx, err)
}

// failure returns the error that ends a call. A refusal here means that the provider refuses every text.
func (o *OpenAI) failure(err error) error {
	if no, ok := errors.AsType[*refusal](err); ok {
		return provider.Told(provider.Settingf("the embedding provider at %s refuses every text: %s: "+
			"check LOCI_EMBEDDING_MODEL (%s) and LOCI_EMBEDDING_DIMENSIONS", o.at.Host(), no.reason, o.config.Model),
			"the embedding provider refuses every text (%s)", no.public)
	}
	if err == context.Canceled || err == context.DeadlineExceeded { //nolint:errorlint // the caller's own, said bare
		return fmt.Errorf("embed with %s: %w", o.config.Model, err)
	}
	return err
}
