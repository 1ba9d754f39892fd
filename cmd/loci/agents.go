package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/loci-memory/loci/agent"
)

// agentsCmd works on the agents of a running server.
type agentsCmd struct {
	List   agentsListCmd   `cmd:"" help:"List the agents."`
	Create agentsCreateCmd `cmd:"" help:"Create an agent, and print its ID."`
	Delete agentsDeleteCmd `cmd:"" help:"Delete an agent with its conversations."`
	Export agentsExportCmd `cmd:"" help:"Write an agent to a file in Letta's format (.af)."`
	Import agentsImportCmd `cmd:"" help:"Create the agents of a file, and print their IDs."`
}

type agentsListCmd struct {
	remote
	asked
	Name string `help:"Agents of this name only."`
}

func (c agentsListCmd) Run(ctx context.Context, s streams) error {
	filter := url.Values{}
	if c.Name != "" {
		filter.Set("name", c.Name)
	}
	all, err := listAll[agent.Agent](ctx, c.remote, "/v1/agents", filter)
	if err != nil {
		return err
	}
	return printList(s, c.asked, all, "ID | NAME | MODEL | CREATED", func(a agent.Agent) []string {
		return []string{a.ID, a.Name, textOf(a.Model), shownTime(&a.CreatedAt)}
	})
}

type agentsExportCmd struct {
	remote
	asked
	Agent string  `arg:"" type:"agent" help:"Name or ID of the agent."`
	File  *string `arg:"" optional:"" help:"File to write, which must not be there yet; else the standard output."`
	Full  bool    `help:"Write all that the agent remembers, not only what Letta's format has."`
}

// Run deletes an incomplete file if the export fails.
func (c agentsExportCmd) Run(ctx context.Context, s streams) (err error) {
	if c.File != nil {
		if err := checkNew(*c.File); err != nil {
			return err
		}
	}
	if c.Agent, err = c.agentID(ctx, c.Agent); err != nil {
		return err
	}
	if c.File == nil {
		_, err = c.write(ctx, s.out)
		return err
	}
	part, err := os.CreateTemp(filepath.Dir(*c.File), filepath.Base(*c.File)+".part-*")
	if err != nil {
		return err
	}
	size, err := c.write(ctx, part)
	if err = errors.Join(err, part.Close()); err == nil {
		err = os.Link(part.Name(), *c.File) // unlike a rename, it replaces no file
	}
	if err = errors.Join(err, os.Remove(part.Name())); err != nil || !c.JSON {
		return err
	}
	return printJSON(s, map[string]any{"agent_id": c.Agent, "file": *c.File, "bytes": size})
}

// write writes the agent, and returns the number of bytes written.
func (c agentsExportCmd) write(ctx context.Context, output io.Writer) (int64, error) {
	body, err := c.download(ctx, fmt.Sprintf("/v1/agents/%s/export?full=%t", url.PathEscape(c.Agent), c.Full))
	if err != nil {
		return 0, err
	}
	defer body.Close()
	return io.Copy(output, body)
}

type agentsImportCmd struct {
	remote
	asked
	File string `arg:"" help:"File to read."`
	Name string `help:"Name of the agent in place of the file's."`

	KeepTools bool `help:"Leave custom tools that have the names of the file's as they are."`
}

func (c agentsImportCmd) Run(ctx context.Context, s streams) error {
	file, err := openFile(ctx, c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	body, pipe := io.Pipe()
	defer body.Close()
	form := multipart.NewWriter(pipe)
	go func() { pipe.CloseWithError(c.send(form, file)) }() // ends with the request, which closes the pipe
	var imported struct {
		AgentIDs []string `json:"agent_ids"`
		LeftOut  []string `json:"left_out"`
	}
	var raw json.RawMessage
	err = c.call(ctx, "/v1/agents/import", body, form.FormDataContentType(), &raw)
	if err = cmp.Or(err, decode(raw, &imported)); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(s, raw)
	}
	for _, sentence := range imported.LeftOut {
		fmt.Fprintln(s.err, sentence)
	}
	for _, id := range imported.AgentIDs {
		fmt.Fprintln(s.out, id)
	}
	return nil
}

// send writes the parts of the form.
func (c agentsImportCmd) send(form *multipart.Writer, file io.Reader) error {
	if c.Name != "" {
		if err := form.WriteField("name", c.Name); err != nil {
			return err
		}
	}
	if c.KeepTools {
		if err := form.WriteField("override_existing_tools", "false"); err != nil {
			return err
		}
	}
	part, err := form.CreateFormFile("file", filepath.Base(c.File))
	if err != nil {
		return err
	}
	if _, err := io.Copy(part, file); err != nil {
		return err
	}
	return form.Close()
}

// download sends a GET request, and returns the body of the answer. The caller must close it.
func (r remote) download(ctx context.Context, path string) (io.ReadCloser, error) {
	req, err := r.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req) //nolint:gosec // the operator names the server
	if err != nil {
		return nil, unanswered(req, err)
	}
	isJSON := strings.HasPrefix(res.Header.Get("Content-Type"), "application/json")
	if res.StatusCode < http.StatusBadRequest && isJSON {
		return res.Body, nil
	}
	defer res.Body.Close()
	if res.StatusCode < http.StatusBadRequest {
		return nil, errNotLoci
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		return nil, err
	}
	return nil, refusal(res.StatusCode, text)
}
