package rest

import (
	"cmp"
	"net/http"
)

// ModelError is a failure of the provider of an agent's model, in Letta's shape.
type ModelError struct {
	Type    string `json:"type" enum:"llm_bad_request,llm_authentication,llm_insufficient_credits,llm_rate_limit,llm_error,llm_timeout"` //nolint:lll // a tag is one line
	Message string `json:"message"`
	Detail  string `json:"detail" doc:"The provider's own words, redacted, of at most 300 characters."`
}

// modelCodes maps the statuses of failures of a provider to Letta's types and our codes.
var modelCodes = map[int]struct{ kind, code string }{
	http.StatusBadRequest:          {"llm_bad_request", codeModelRefused},
	http.StatusUnauthorized:        {"llm_authentication", codeModelKey},
	http.StatusPaymentRequired:     {"llm_insufficient_credits", codeModelCredits},
	http.StatusTooManyRequests:     {"llm_rate_limit", codeModelLimited},
	http.StatusInternalServerError: {"llm_error", codeModelFailed},
	http.StatusGatewayTimeout:      {"llm_timeout", codeModelTimeout},
}

// ModelFailed is the problem of a run that failed for its model's provider. status is one of those above, said a
// sentence, and words are the provider's own.
func ModelFailed(status int, said, words, runID string) *Problem {
	of, known := modelCodes[status]
	if !known {
		of = modelCodes[http.StatusInternalServerError]
	}
	p := newProblem(of.code, said)
	p.RunID, p.Failed = runID, &ModelError{of.kind, said, cmp.Or(words, said)}
	return p
}
