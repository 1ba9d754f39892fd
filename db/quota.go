package db

import (
	"errors"
	"fmt"
	"time"
)

// The quotas of an organization.
const (
	QuotaAgents      = "agents"
	QuotaStoredBytes = "stored_bytes"
	QuotaRequests    = "requests_per_month"

	QuotaGatewayRequests = "gateway_requests_per_day"
	QuotaGatewayTokens   = "gateway_tokens_per_day"
)

// QuotaError says that a change or a request would exceed one of an organization's quotas. Nothing of it was done.
type QuotaError struct {
	Quota     string `json:"quota" enum:"agents,stored_bytes,requests_per_month,gateway_requests_per_day,gateway_tokens_per_day" doc:"The quota that is used up."` //nolint:lll // a tag is one line
	Used      int64  `json:"used" doc:"What the organization has of it."`
	Requested int64  `json:"requested" doc:"What the request would add."`
	Limit     int64  `json:"limit" doc:"What the organization may have; the operator of the server sets it."`

	Until time.Time `json:"-"` // when requests are counted from 0 again
}

// Error implements error.
func (q *QuotaError) Error() string {
	switch q.Quota {
	case QuotaAgents:
		return fmt.Sprintf("The organization's quota of agents is used up: it has %d of %d, and %d more would be made. "+
			"Delete agents, or ask the operator of the server for more.", q.Used, q.Limit, q.Requested)
	case QuotaStoredBytes:
		return fmt.Sprintf("The organization's quota of stored bytes is used up: it stores %d of %d, and %d more would be "+
			"stored. Delete files, agents or passages, or ask the operator of the server for more.", q.Used, q.Limit,
			q.Requested)
	}
	if q.Quota == QuotaGatewayRequests || q.Quota == QuotaGatewayTokens {
		what := map[string]string{QuotaGatewayRequests: "requests", QuotaGatewayTokens: "tokens"}[q.Quota]
		return fmt.Sprintf("The organization's quota of %s that this server pays for is used up: %d of %d today, which ends "+
			"at %s. Send a credential of your provider, or ask the operator of the server for more.", what, q.Used, q.Limit,
			q.Until.UTC().Format(time.RFC3339))
	}
	return fmt.Sprintf("The organization's quota of requests is used up: it has sent %d of %d this month, which ends at "+
		"%s. Ask the operator of the server for more.", q.Used, q.Limit, q.Until.UTC().Format(time.RFC3339))
}

// QuotaExceeded returns the QuotaError in an error. ok is false if there is none.
func QuotaExceeded(err error) (q *QuotaError, ok bool) {
	return errors.AsType[*QuotaError](err)
}
