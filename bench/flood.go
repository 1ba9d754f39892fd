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

// flood is what floods a server: an organization, whose clients append, upload, search and ask for prompts as fast as
// they are answered. They run in a process of their own, so that they do not hold up the clients that are measured.
type flood struct {
	Base      string     `json:"base"`
	Key       string     `json:"key"`
	Agents    []string   `json:"agents"`  // one of each client
	Folders   []string   `json:"folders"` // one of each client
	Documents []Document `json:"documents"`
}

// newFlood makes an organization that can flood the server.
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

// floodTally is what a flood did.
type floodTally struct {
	Seconds  float64          `json:"seconds"`
	Accepted map[string]int64 `json:"accepted"` // by kind of work
	Refused  map[string]int64 `json:"refused"`  // answers that ask for the same request later
}

// sum adds up tallies.
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

// String says what the flood did in a second.
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
	stop io.Closer // ends the flood
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
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	run := &floodRun{cmd: cmd, stop: in, out: json.NewDecoder(out)}
	if err := json.NewEncoder(in).Encode(f); err != nil {
		return nil, errors.Join(err, run.kill())
	}
	return run, nil
}

// end ends the flood and returns what it did. A request that failed for another reason than its number is an error.
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

// floodKinds are the kinds of the work of a flood's clients. Of as many clients in a row each does another one.
const floodKinds = 4

// floodWork is what the flood's clients do, each of them one kind.
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
			return c.search(ctx, f.Agents[i-i%floodKinds]) // of the agent to which another client appends
		}
		_, err := c.tool(ctx, f.Agents[i-1], "semantic_search_files", map[string]any{"query": "harbour of ferries"})
		return err
	}},
	{"prompt", func(ctx context.Context, f *flood, c client, i, _ int) error {
		return c.prompt(ctx, f.Agents[i-i%floodKinds])
	}},
}

// runFlood reads a flood, floods until the input ends, and writes what it did.
func runFlood(ctx context.Context, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var f flood
	input := json.NewDecoder(in)
	if err := input.Decode(&f); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in) // until it is closed
		cancel()
	}()
	began := time.Now()
	tally, err := f.run(ctx)
	if err != nil {
		return err
	}
	tally.Seconds = time.Since(began).Seconds()
	return json.NewEncoder(out).Encode(tally)
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
	for each := range failed {
		err = errors.Join(err, each)
	}
	return t, err
}
