package llm

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// The list of models is asked for at most once in listAge. The request may take listTimeout.
const (
	listAge     = 5 * time.Minute
	listTimeout = 3 * time.Second
)

// modelList is the endpoint's latest list of models.
type modelList struct {
	mu    sync.Mutex
	names []string
	asked time.Time
}

// unlisted are HTTP statuses of endpoints that have no list of models.
var unlisted = []int{http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented}

// otherModels are parts of the names of models that do not chat.
var otherModels = []string{"embed", "whisper", "tts", "dall-e", "moderation", "image", "audio", "realtime",
	"transcribe", "rerank", "sora"}

// Models returns the names of the endpoint's models that may chat, in their order; none if it does not list them. It
// asks the endpoint at most once in five minutes.
func (c *Client) Models(ctx context.Context) []string {
	l := &c.list
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.asked) < listAge {
		return l.names
	}
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	names, err := c.ListModels(ctx)
	l.asked = time.Now()
	if err == nil { // otherwise keep the last list
		l.names = names
	}
	return l.names
}

// ListModels asks the endpoint for the names that Models returns. An error is a sentence for the operator that names
// the setting to check. An endpoint without a list is no error.
func (c *Client) ListModels(ctx context.Context) (names []string, err error) {
	answer, err := c.client.ListModels(ctx)
	if status, _ := c.at.Answered(err); err != nil && slices.Contains(unlisted, status) {
		return nil, nil
	}
	if err != nil {
		return nil, c.at.Explain(ctx, err)
	}
	for _, m := range answer.Models {
		if m.ID != "" && !slices.ContainsFunc(otherModels, func(part string) bool {
			return strings.Contains(strings.ToLower(m.ID), part)
		}) {
			names = append(names, m.ID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
