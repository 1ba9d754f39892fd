package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
)

// client sends requests to a server as any client does.
type client struct {
	base string
	http *http.Client
	key  string // empty for none
}

func newClient(base string) client {
	transport := &http.Transport{MaxIdleConnsPerHost: 2*manyClients + floodClients}
	return client{base: base, http: &http.Client{Transport: transport}}
}

// call sends a JSON body, and decodes a JSON answer into out; both may be nil.
func (c client) call(ctx context.Context, method, path string, body, out any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, sent)
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	return c.do(req, out)
}

// laterError is an answer that asks to repeat the request later: a 429 or a 503.
type laterError struct{ error }

func (c client) do(req *http.Request, out any) error {
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		err := fmt.Errorf("%s %s answers %d: %.500s", req.Method, req.URL.Path, res.StatusCode, text)
		if res.Header.Get("Retry-After") != "" {
			return &laterError{err}
		}
		return err
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

type named struct {
	ID string `json:"id"`
}

// folder creates a folder, and an agent that has the folder.
func (c client) folder(ctx context.Context, name string) (folder, agent string, err error) {
	var f, a named
	if err := c.call(ctx, http.MethodPost, "/v1/folders/", map[string]string{"name": name}, &f); err != nil {
		return "", "", err
	}
	if err := c.call(ctx, http.MethodPost, "/v1/agents/", agentNamed(name), &a); err != nil {
		return "", "", err
	}
	return f.ID, a.ID, c.call(ctx, http.MethodPatch, "/v1/agents/"+a.ID+"/folders/attach/"+f.ID, nil, nil)
}

// upload uploads documents, several at the same time.
func (c client) upload(ctx context.Context, folder string, list []Document) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(uploaders)
	for _, d := range list {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { return c.uploadOne(ctx, folder, d) })
	}
	return group.Wait()
}

func (c client) uploadOne(ctx context.Context, folder string, d Document) error {
	file, err := os.Open(d.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	var head bytes.Buffer
	form := multipart.NewWriter(&head)
	if _, err := form.CreateFormFile("file", filepath.Base(d.Path)); err != nil {
		return err
	}
	tail := "\r\n--" + form.Boundary() + "--\r\n"
	size := int64(head.Len()) + d.Bytes + int64(len(tail))
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/v1/folders/"+folder+"/upload",
		io.MultiReader(&head, file, bytes.NewReader([]byte(tail))))
	if err != nil {
		return err
	}
	req.ContentLength = size
	req.Header.Set("Content-Type", form.FormDataContentType())
	return c.do(req, nil)
}

// agentNamed returns the request for an agent with every tool.
func agentNamed(name string) map[string]string {
	return map[string]string{"name": name, "tool_set": "all"}
}

// tool runs an agent's tool, and returns the result's text.
func (c client) tool(ctx context.Context, agent, name string, args map[string]any) (string, error) {
	var answer struct {
		Status string `json:"status"`
		Return string `json:"func_return"`
	}
	if err := c.call(ctx, http.MethodPost, "/v1/agents/"+agent+"/tools/"+name+"/run", map[string]any{"args": args},
		&answer); err != nil {
		return "", err
	}
	if answer.Status != "success" {
		return "", fmt.Errorf("%s answers: %.500s", name, answer.Return)
	}
	return answer.Return, nil
}

// statuses counts a folder's files by status, as a client sees them.
func (c client) statuses(ctx context.Context, folder string) (map[string]int, error) {
	counts, cursor := map[string]int{}, ""
	for {
		var page []struct {
			ID     string `json:"id"`
			Status string `json:"processing_status"`
		}
		if err := c.call(ctx, http.MethodGet, "/v1/folders/"+folder+"/files?limit=500&after="+cursor, nil,
			&page); err != nil {
			return nil, err
		}
		for _, f := range page {
			counts[f.Status]++
			cursor = f.ID
		}
		if len(page) == 0 {
			return counts, nil
		}
	}
}

// say appends a message of the user and one of the agent.
func (c client) say(ctx context.Context, agent, text string) error {
	return c.call(ctx, http.MethodPost, "/v1/agents/"+agent+"/messages/capture", map[string]any{
		"messages": []map[string]string{{"role": "user", "content": text}, {"role": "assistant", "content": "Yes."}}}, nil)
}

func (c client) prompt(ctx context.Context, agent string) error {
	return c.call(ctx, http.MethodGet, "/v1/agents/"+agent+"/prompt", nil, nil)
}

func (c client) search(ctx context.Context, agent string) error {
	_, err := c.tool(ctx, agent, "conversation_search", map[string]any{"query": "when does the ferry leave the harbour"})
	return err
}
