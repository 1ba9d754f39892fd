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

// post sends a request and returns the body of a good answer. Its error is a *Fault, or that of ctx.
func post(ctx context.Context, client *http.Client, at *provider.Endpoint, path string, header map[string]string,
	exact json.RawMessage,
) (io.ReadCloser, error) {
	var after time.Duration
	r, err := http.NewRequestWithContext(provider.WithRetryAfter(ctx, &after), http.MethodPost,
		strings.TrimRight(at.BaseURL, "/")+path, bytes.NewReader(exact))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	for name, value := range header {
		r.Header.Set(name, value)
	}
	answer, err := client.Do(r)
	if err != nil {
		return nil, faultOf(ctx, at, err)
	}
	if answer.StatusCode >= http.StatusMultipleChoices {
		defer answer.Body.Close()
		said, err := io.ReadAll(answer.Body)
		if err != nil {
			return nil, faultOf(ctx, at, err)
		}
		return nil, reply{status: answer.StatusCode, body: said, after: after}.fault(ctx, at)
	}
	return answer.Body, nil
}
