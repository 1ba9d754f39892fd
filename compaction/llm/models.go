package llm

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// A list of models is asked for once in listAge, and may take listTimeout.
const (
	listAge     = 5 * time.Minute
	listTimeout = 3 * time.Second
)

// modelList is the models of an endpoint as it listed them last.
type modelList struct {
	mu    sync.Mutex
	names []string
	asked time.Time
}

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
	answer, err := c.client.ListModels(ctx)
	l.asked = time.Now()
	if err != nil {
		return l.names // those of the last time
	}
	l.names = nil
	for _, m := range answer.Models {
		if m.ID != "" && !slices.ContainsFunc(otherModels, func(part string) bool {
			return strings.Contains(strings.ToLower(m.ID), part)
		}) {
			l.names = append(l.names, m.ID)
		}
	}
	slices.Sort(l.names)
	l.names = slices.Compact(l.names)
	return l.names
}
