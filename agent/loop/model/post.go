package model

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/loci-memory/loci/embed/provider"
)

// posted is a request to an endpoint.
type posted struct {
	path   string // path behind the endpoint's base URL
	header map[string]string
	body   json.RawMessage
}

// post sends a request, and returns the body of a good answer. Its error is a *Fault or ctx's.
func post(ctx context.Context, client *http.Client, endpoint *provider.Endpoint, p posted) (io.ReadCloser, error) {
	var after time.Duration
	r, err := http.NewRequestWithContext(provider.WithRetryAfter(ctx, &after), http.MethodPost,
		strings.TrimRight(endpoint.BaseURL, "/")+p.path, bytes.NewReader(p.body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	for name, value := range p.header {
		r.Header.Set(name, value)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, faultOf(ctx, endpoint, err)
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			return nil, faultOf(ctx, endpoint, err)
		}
		return nil, reply{status: answer.StatusCode, body: body, after: after}.fault(ctx, endpoint)
	}
	return answer.Body, nil
}
