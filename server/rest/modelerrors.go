package rest

import (
	"cmp"
	"net/http"
)

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
