package rest

import (
	"net/http"
	"slices"
)

// ErrorCode is a kind of error, as answers name it and as /v1/errors explains it.
type ErrorCode struct {
	Code    string `json:"code" doc:"The word that answers with this error have as code. It never changes."`
	Type    string `json:"type" doc:"The class of the error: what a program decides by."`
	Status  int    `json:"status" doc:"The HTTP status, unless the meaning names another one."`
	Meaning string `json:"meaning" doc:"When it is answered, and what to do."`
}

// The classes of errors.
const (
	typeRequest     = "invalid_request"
	typeKey         = "authentication"
	typePermission  = "permission"
	typeNotFound    = "not_found"
	typeConflict    = "conflict"
	typeLimit       = "rate_limit"
	typeUnavailable = "unavailable"
	typeServer      = "server_error"
	typeModel       = "model_provider"
)

// The codes of errors.
const (
	codeMalformed  = "malformed_request"
	codeInvalid    = "invalid_value"
	codeKey        = "unauthorized"
	codeKeyExpired = "key_expired"
	codeScope      = "insufficient_scope"
	codeKeyLimit   = "key_limit"
	codeQuota      = "quota_exceeded"
	codeForbidden  = "forbidden"
	codeNotFound   = "not_found"
	codeRoute      = "unknown_route"
	codeMethod     = "method_not_allowed"
	codeSlow       = "body_too_slow"
	codeConflict   = "conflict"
	codeConcurrent = "concurrent_change"
	codeCondition  = "precondition_failed"
	codeTooLarge   = "too_large"
	codeMediaType  = "unsupported_media_type"
	codeRange      = "range_not_satisfiable"
	codeTooMany    = "too_many_requests"
	codeClientGone = "client_gone"
	codeInternal   = "internal_error"
	codeNotServed  = "not_implemented"
	codeBusy       = "busy"
	codeNoDatabase = "database_unavailable"
	codeNoRoom     = "no_room"
	codeStopping   = "server_stopping"
	codeNoModel    = "no_model"
	codeExpired    = "expired"
	codeApproval   = "pending_approval"

	codeModelRefused = "model_refused"
	codeModelKey     = "model_key"
	codeModelCredits = "model_credits"
	codeModelLimited = "model_limited"
	codeModelFailed  = "model_failed"
	codeModelTimeout = "model_timeout"
)

// errorCodes are all errors of the API, sorted by status.
var errorCodes = []ErrorCode{
	{codeMalformed, typeRequest, http.StatusBadRequest,
		"The request cannot be read: its body is not JSON or ends early. Send it whole."},
	{codeModelRefused, typeModel, http.StatusBadRequest,
		"The provider of the agent's model refused the prompt; error.detail has its words. If it is for what the prompt " +
			"says, the refused messages left the model's view, and the next message is answered. If it is for the agent's " +
			"memory, its system prompt or its open files, the message of the error names that place, and no message " +
			"left. Change what was sent."},
	{codeKey, typeKey, http.StatusUnauthorized,
		"The request has no API key that the server knows. Send 'Authorization: Bearer KEY'."},
	{codeKeyExpired, typeKey, http.StatusUnauthorized, "The API key has expired. Use a new one."},
	{codeModelKey, typeModel, http.StatusUnauthorized,
		"The provider of the agent's model does not accept the server's key. Its operator changes that key."},
	{codeModelCredits, typeModel, http.StatusPaymentRequired,
		"The account at the provider of the agent's model has no credit left. The operator of the server adds some."},
	{codeForbidden, typePermission, http.StatusForbidden,
		"A server without API keys answers only programs on its own machine: create a key."},
	{codeScope, typePermission, http.StatusForbidden,
		"The API key may not do this; detail names the scope that it lacks, or the agent. Use a key that has it. The same " +
			"request fails again."},
	{codeQuota, typePermission, http.StatusForbidden,
		"A quota that the operator set for the organization is used up; quota names it, what is used and the limit. " +
			"Nothing was stored. A used up quota of requests is a 429; Retry-After says when the month ends."},
	{codeNotFound, typeNotFound, http.StatusNotFound,
		"What the path or the body names does not exist, or belongs to another organization."},
	{codeRoute, typeNotFound, http.StatusNotFound, "There is no such path. /openapi.json lists all."},
	{codeMethod, typeRequest, http.StatusMethodNotAllowed,
		"The path has no such method; the header Allow lists its methods."},
	{codeSlow, typeRequest, http.StatusRequestTimeout, "The body came too slowly. Send it again, or in parts."},
	{codeConflict, typeConflict, http.StatusConflict,
		"The request contradicts what is stored, such as a name that is taken. The same request fails again."},
	{codeConcurrent, typeConflict, http.StatusConflict,
		"Other requests changed the same things at the same moment. Send it again after Retry-After seconds."},
	{codeApproval, typeConflict, http.StatusConflict,
		"The agent waits for an approval or for the result of a tool. Send that first."},
	{codeExpired, typeNotFound, http.StatusGone,
		"The stream of a run is kept for hours that the organization sets, three by default. Its messages stay."},
	{codeCondition, typeConflict, http.StatusPreconditionFailed, "What a header such as If-Match asks for does not hold."},
	{codeTooLarge, typeRequest, http.StatusRequestEntityTooLarge, "The body is larger than the limit that detail names."},
	{codeMediaType, typeRequest, http.StatusUnsupportedMediaType,
		"The server cannot read files of this type, or bodies with this Content-Encoding."},
	{codeRange, typeRequest, http.StatusRequestedRangeNotSatisfiable,
		"The file has none of the bytes that Range asks for; Content-Range has its size."},
	{codeInvalid, typeRequest, http.StatusUnprocessableEntity,
		"A parameter or a field is missing, has another form than /openapi.json says, or breaks a rule. Where a route " +
			"is also Letta's, a value of the right form that breaks a rule is a 400, as in Letta, unless it is longer than " +
			"its block. Change what detail names."},
	{codeTooMany, typeLimit, http.StatusTooManyRequests,
		"The organization has too much under way at once. Send it again after Retry-After seconds."},
	{codeKeyLimit, typeLimit, http.StatusTooManyRequests,
		"The API key sends more requests than it may, a minute or at once. Send it again after Retry-After seconds."},
	{codeModelLimited, typeModel, http.StatusTooManyRequests,
		"The provider of the agent's model limits requests. Send the same messages again later: they are stored once."},
	{codeClientGone, typeRequest, statusClientGone, "The client closed the connection; only logs show this."},
	{codeInternal, typeServer, http.StatusInternalServerError,
		"The server has a fault. Its log has the cause under the answer's X-Request-Id."},
	{codeModelFailed, typeModel, http.StatusInternalServerError,
		"The provider of the agent's model fails; error.detail has its words. Send the same messages again later: they are " +
			"stored once."},
	{codeNotServed, typeRequest, http.StatusNotImplemented,
		"The route is one of Letta's that this server does not have; detail says why. The same request fails again."},
	{codeBusy, typeUnavailable, http.StatusServiceUnavailable,
		"What the request needs is at work for others. Send it again after Retry-After seconds."},
	{codeNoDatabase, typeUnavailable, http.StatusServiceUnavailable,
		"The database does not answer, or lacks a part of Loci's schema. Send it again after Retry-After seconds. If it " +
			"did not confirm a change, that may be stored, and the sentence says so: a message that comes again is not " +
			"stored twice."},
	{codeNoModel, typeUnavailable, http.StatusServiceUnavailable,
		"No language model is configured, so that the server can run no agent. The operator sets LOCI_LLM_BASE_URL and " +
			"LOCI_LLM_MODEL. A program with a model of its own needs neither: it uses prompt and capture. Of embeddings: no " +
			"embedding model is in use, see LOCI_EMBEDDING."},
	{codeNoRoom, typeUnavailable, http.StatusServiceUnavailable,
		"The database's disk is full, or it is read-only. Reading works; storing does when the operator has mended that."},
	{codeStopping, typeUnavailable, http.StatusServiceUnavailable,
		"The server stopped before it was done with the request, of which it may have begun something. Send it again after " +
			"Retry-After seconds."},
	{codeModelTimeout, typeModel, http.StatusGatewayTimeout,
		"The provider of the agent's model does not answer in time. Send the same messages again later: they are stored " +
			"once."},
}

// codeOf returns the description of a code.
func codeOf(code string) ErrorCode {
	return errorCodes[slices.IndexFunc(errorCodes, func(c ErrorCode) bool { return c.Code == code })]
}

// statusClientGone is the status, in nginx and in Letta, of a request that its client gave up. Only the log shows it.
const statusClientGone = 499
