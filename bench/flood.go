package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// flood describes a flood of a server by one organization: its clients append, upload, search and ask for prompts as
// fast as they get answers. They run in a separate process, so that they do not slow the measured clients down.
type flood struct {
	Base      string     `json:"base"`
	Key       string     `json:"key"`
	Agents    []string   `json:"agents"`  // one for each client
	Folders   []string   `json:"folders"` // one for each client
	Documents []Document `json:"documents"`
}

// newFlood creates an organization that can flood the server.
func (s *instance) newFlood(ctx context.Context, documents []Document) (*flood, error) {
	c, err := s.organization(ctx, "flood")
	if err != nil {
		return nil, err
	}
	f := &flood{Base: c.base, Key: c.key, Documents: documents}
	for i := range floodClients {
		folder, agent, err := c.folder(ctx, fmt.Sprintf("flood %d", i))
		if err != nil {
			return nil, err
		}
		f.Folders, f.Agents = append(f.Folders, folder), append(f.Agents, agent)
	}
	return f, nil
}

// floodTally counts what a flood did.
type floodTally struct {
	Seconds  float64          `json:"seconds"`
	Accepted map[string]int64 `json:"accepted"` // by kind of work
	Refused  map[string]int64 `json:"refused"`  // answers that ask to repeat the request later
}

// sum adds tallies up.
func sum(list []floodTally) floodTally {
	all := floodTally{Accepted: map[string]int64{}, Refused: map[string]int64{}}
	for _, t := range list {
		all.Seconds += t.Seconds
		for work, n := range t.Accepted {
			all.Accepted[work] += n
		}
		for work, n := range t.Refused {
			all.Refused[work] += n
		}
	}
	return all
}

// String describes what the flood did per second.
func (t floodTally) String() string {
	if t.Seconds == 0 {
		return "no flood"
	}
	var parts []string
	for _, work := range slices.Sorted(maps.Keys(t.Accepted)) {
		parts = append(parts, fmt.Sprintf("%s %.0f/s", work, float64(t.Accepted[work])/t.Seconds))
	}
	refused := int64(0)
	for _, n := range t.Refused {
		refused += n
	}
	return fmt.Sprintf("flood of %d clients: %s, refused %.0f/s", floodClients, strings.Join(parts, ", "),
		float64(refused)/t.Seconds)
}

// floodRun is the process of a flood's clients.
type floodRun struct {
	cmd  *exec.Cmd
	stop io.Closer // closing it ends the flood
	out  *json.Decoder
}

// start floods the server until end or kill is called.
func (f *flood) start(ctx context.Context) (*floodRun, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program, "-flood")
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	run := &floodRun{cmd: cmd, stop: stdin, out: json.NewDecoder(stdout)}
	if err := json.NewEncoder(stdin).Encode(f); err != nil {
		return nil, errors.Join(err, run.kill())
	}
	return run, nil
}

// end ends the flood, and returns its tally. It returns an error if a request failed for another reason than too many
// requests.
func (r *floodRun) end() (t floodTally, err error) {
	err = errors.Join(r.stop.Close(), r.out.Decode(&t))
	if err = errors.Join(err, r.cmd.Wait()); err != nil {
		err = fmt.Errorf("the flood: %w", err)
	}
	return t, err
}

func (r *floodRun) kill() error {
	return errors.Join(r.stop.Close(), r.cmd.Process.Kill(), r.cmd.Wait())
}

// floodKinds is the number of kinds of work. Consecutive clients do different kinds.
const floodKinds = 4

// floodWork is the work of the flood's clients. Each client does one kind.
var floodWork = [floodKinds]struct {
	name string
	do   func(ctx context.Context, f *flood, c client, i, n int) error
}{
	{"append", func(ctx context.Context, f *flood, c client, i, n int) error {
		return c.say(ctx, f.Agents[i], fmt.Sprintf("Client %d says for the time %d that the harbour is full.", i, n))
	}},
	{"upload", func(ctx context.Context, f *flood, c client, i, n int) error {
		return c.uploadOne(ctx, f.Folders[i], f.Documents[(i*len(f.Documents)/floodClients+n)%len(f.Documents)])
	}},
	{"search", func(ctx context.Context, f *flood, c client, i, n int) error {
		if n%2 == 0 {
			return c.search(ctx, f.Agents[i-i%floodKinds]) // the agent that another client appends to
		}
		_, err := c.tool(ctx, f.Agents[i-1], "semantic_search_files", map[string]any{"query": "harbour of ferries"})
		return err
	}},
	{"prompt", func(ctx context.Context, f *flood, c client, i, _ int) error {
		return c.prompt(ctx, f.Agents[i-i%floodKinds])
	}},
}

// runFlood reads a flood, floods until the input ends, and writes the tally.
func runFlood(ctx context.Context, stdin io.Reader, stdout io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var f flood
	input := json.NewDecoder(stdin)
	if err := input.Decode(&f); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, stdin) // until it is closed
		cancel()
	}()
	start := time.Now()
	tally, err := f.run(ctx)
	if err != nil {
		return err
	}
	tally.Seconds = time.Since(start).Seconds()
	return json.NewEncoder(stdout).Encode(tally)
}

func (f *flood) run(ctx context.Context) (floodTally, error) {
	var clients sync.WaitGroup
	accepted, refused := make([]atomic.Int64, len(floodWork)), make([]atomic.Int64, len(floodWork))
	failed := make(chan error, floodClients)
	c := newClient(f.Base)
	c.key = f.Key
	for i := range floodClients {
		clients.Go(func() {
			kind := i % len(floodWork)
			for n := 0; ctx.Err() == nil; n++ {
				err := floodWork[kind].do(ctx, f, c, i, n)
				_, later := errors.AsType[*laterError](err)
				switch {
				case err == nil:
					accepted[kind].Add(1)
				case later:
					refused[kind].Add(1)
				case ctx.Err() == nil:
					failed <- fmt.Errorf("%s: %w", floodWork[kind].name, err)
					return
				}
			}
		})
	}
	clients.Wait()
	close(failed)
	t := floodTally{Accepted: map[string]int64{}, Refused: map[string]int64{}}
	for i, work := range floodWork {
		t.Accepted[work.name], t.Refused[work.name] = accepted[i].Load(), refused[i].Load()
	}
	var err error
	for failure := range failed {
		err = errors.Join(err, failure)
	}
	return t, err
}
