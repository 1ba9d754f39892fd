package rest

import (
	"cmp"
	"net/http"
)

// modelCodes maps the status of a model provider's failure to Letta's error type and our code.
var modelCodes = map[int]struct{ kind, code string }{
	http.StatusBadRequest:          {"llm_bad_request", codeModelRefused},
	http.StatusUnauthorized:        {"llm_authentication", codeModelKey},
	http.StatusPaymentRequired:     {"llm_insufficient_credits", codeModelCredits},
	http.StatusTooManyRequests:     {"llm_rate_limit", codeModelLimited},
	http.StatusInternalServerError: {"llm_error", codeModelFailed},
	http.StatusGatewayTimeout:      {"llm_timeout", codeModelTimeout},
}

// ModelFailed is the problem of a run that failed because the model's provider failed. status is a key of modelCodes
// (any other counts as 500), sentence says what failed, and words is the provider's own text.
func ModelFailed(status int, sentence, words, runID string) *Problem {
	kind, known := modelCodes[status]
	if !known {
		kind = modelCodes[http.StatusInternalServerError]
	}
	p := newProblem(kind.code, sentence)
	p.RunID, p.Failed = runID, &ModelError{kind.kind, sentence, cmp.Or(words, sentence)}
	return p
}
