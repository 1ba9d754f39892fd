package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"
)

const (
	gatewayRequests = 200 // for each mode and side
	gatewayStreams  = 64
)

// newProvider returns a provider that answers chat completions at once, in a stream.
func newProvider() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the client may have left
		w.Header().Set("Content-Type", "text/event-stream")
		for _, text := range []string{"Look ", "at ", "the ", "file."} {
			fmt.Fprintf(w, "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%q}}]}\n\n", text)
		}
		fmt.Fprint(w, "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}))
}

// upstreamsOf is the setting for a provider.
func upstreamsOf(provider *httptest.Server) string {
	return fmt.Sprintf(`LOCI_UPSTREAMS=[{"name":"openai","url":"%s/v1"}]`, provider.URL)
}

// gateway measures what the gateway adds before the first byte of an answer, with the loaded files as the agent's
// memory, and how many streams it passes on at once.
func (b *bench) gateway(ctx context.Context, loaded *ingestion, provider *httptest.Server) error {
	queries, err := wordsOf(loaded.documents, b.Queries)
	if err != nil {
		return err
	}
	through := loaded.base + "/agents/" + loaded.agent + "/openai/v1"
	ask := func(base, mode string, n int) (first time.Duration, memory string, err error) {
		question := fmt.Sprintf("Question %d: where do we handle %s, and why?", n, queries[n%len(queries)])
		return firstByte(ctx, loaded.http, base, mode, question)
	}
	files := fmt.Sprintf("beside %d files", len(loaded.documents))
	for _, mode := range []struct {
		name   string
		atMost float64
	}{{"observe", 10}, {"remember", 60}} {
		row := Row{What: "gateway, " + mode.name + ", " + files + ": added before the first byte", Unit: "ms",
			AtMost: mode.atMost}
		for n := range gatewayRequests {
			alone, _, errAlone := ask(provider.URL+"/v1", "", n)
			passed, memory, errPassed := ask(through, mode.name, n)
			if err := errors.Join(errAlone, errPassed); err != nil {
				return err
			}
			if memory != mode.name {
				return fmt.Errorf("the gateway's memory is %s in the mode %s", memory, mode.name)
			}
			row.Loci.Raw = append(row.Loci.Raw, (passed-alone).Seconds()*1e3)
		}
		row.settle(median)
		row.thin()
		row.Note = fmt.Sprintf("median of %d requests, each beside one to the provider alone", gatewayRequests)
		say("%s: %.2f ms", row.What, row.Loci.Value)
		b.report.add(row)
	}
	streams := Row{What: fmt.Sprintf("gateway, observe, %d streams at once: answers", gatewayStreams), Unit: "1/s"}
	var without atomic.Int64
	took, err := repeat(ctx, gatewayStreams, 5*time.Second, func(client, n int) error {
		_, memory, err := ask(through, "observe", client+n*gatewayStreams)
		if memory == "unavailable" {
			without.Add(1)
		}
		return err
	})
	if err != nil {
		return err
	}
	streams.Loci.Raw = []float64{took.rate()}
	streams.settle(median)
	streams.Note = fmt.Sprintf("the median took %.0f ms; the memory was too busy for %d of %d", took.p50()*1e3,
		without.Load(),
		len(took.seconds))
	b.report.add(streams)
	return nil
}

// firstByte sends a chat request, and returns how long the first byte of its answer took, and what the answer says of
// the memory. It reads all of the answer.
func firstByte(ctx context.Context, c *http.Client, base, mode, question string) (first time.Duration, memory string,
	err error) {
	body, err := json.Marshal(map[string]any{"model": "gpt-4o", "stream": true,
		"messages": []any{map[string]string{"role": "user", "content": question}}})
	if err != nil {
		return 0, "", err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("Content-Type", "application/json")
	if mode != "" {
		r.Header.Set("X-Loci-Mode", mode)
	}
	begin := time.Now()
	answer, err := c.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer answer.Body.Close()
	one := make([]byte, 1)
	if _, err := io.ReadFull(answer.Body, one); err != nil {
		return 0, "", err
	}
	first = time.Since(begin)
	_, err = io.Copy(io.Discard, answer.Body)
	if answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the gateway answers %d", answer.StatusCode)
	}
	return first, answer.Header.Get("X-Loci-Memory"), err
}
