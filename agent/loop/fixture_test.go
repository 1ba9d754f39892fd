package loop_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/riverqueue/river"

	"github.com/loci-memory/loci/agent"
	"github.com/loci-memory/loci/agent/loop"
	"github.com/loci-memory/loci/agent/loop/model"
	"github.com/loci-memory/loci/agent/loop/model/modeltest"
	"github.com/loci-memory/loci/agent/tool"
	"github.com/loci-memory/loci/archival"
	"github.com/loci-memory/loci/compaction"
	"github.com/loci-memory/loci/db"
	"github.com/loci-memory/loci/db/dbtest"
	"github.com/loci-memory/loci/db/queue/queuetest"
	"github.com/loci-memory/loci/files"
	"github.com/loci-memory/loci/memory/block"
	memoryfile "github.com/loci-memory/loci/memory/file"
	"github.com/loci-memory/loci/memory/working"
	"github.com/loci-memory/loci/recall"
	"github.com/loci-memory/loci/recall/tokens"
)

func TestMain(m *testing.M) { dbtest.Main(m) }

// patience bounds a wait; reaching it is a failure.
const patience = time.Minute

// fixture is an agent with a scripted model, on a loop that runs until the test ends.
type fixture struct {
	testing.TB
	*loop.Loop
	config loop.Loop // of Loop
	org    db.Org
	model  *modeltest.Model
	agent  agent.Agent
}

// newFixture returns an agent with these settings, if not nil.
func newFixture(t *testing.T, settings *agent.Settings) *fixture {
	t.Helper()
	n := agent.New{Name: "Ada"}
	if settings != nil {
		n.Settings = *settings
	}
	return newFixtureOf(t, n)
}

func newFixtureOf(t *testing.T, n agent.New) *fixture {
	t.Helper()
	pool, org := dbtest.Org(t)
	documents, err := files.New(pool, files.Options{Limits: agent.LimitsOf})
	if err != nil {
		t.Fatal(err)
	}
	log := recall.New(pool, recall.Options{})
	agents := &agent.Store{DB: pool, Files: documents, Recall: log, Blocks: &block.Store{DB: pool},
		Archival: archival.New(pool, archival.Options{}), Tokens: tokens.New(),
		Working:     &working.Store{DB: pool, Recall: log, Files: documents},
		MemoryFiles: memoryfile.New(pool, memoryfile.Options{}), Compaction: compaction.New(pool, log),
		Jobs: queuetest.Jobs(t, pool, org, river.Config{})}
	tools := tool.New(tool.Memories{Files: documents, Recall: log, Blocks: agents.Blocks, Archival: agents.Archival,
		Agents: agents, Working: agents.Working, MemoryFiles: agents.MemoryFiles})
	agents.Tools = tools.Definitions
	f := &fixture{TB: t, org: org, model: modeltest.New(t)}
	client, err := model.NewOpenAI(model.Config{BaseURL: f.model.BaseURL(), Model: "m"})
	if err != nil {
		t.Fatal(err)
	}
	f.config = loop.Loop{DB: pool, Agents: agents, Recall: log, Tools: tools, Server: "server-" + t.Name(),
		Log: slog.New(slog.DiscardHandler), FirstPause: time.Nanosecond, Render: renderTypes,
		Models: func(string) (loop.Model, error) { return loop.Model{Client: client, Name: "m"}, nil }}
	if f.agent, err = agents.Create(t.Context(), org, n); err != nil {
		t.Fatal(err)
	}
	f.Loop = f.run(f.config)
	return f
}

// run runs a loop until the test ends.
func (f *fixture) run(config loop.Loop) *loop.Loop {
	l := loop.New(config)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { l.Run(ctx, nil) })
	f.Cleanup(func() {
		cancel()
		running.Wait()
	})
	return l
}

// renderTypes renders an event as one item, which names what the event has.
func renderTypes(_ loop.Run, e loop.Event, seq int64) []json.RawMessage {
	item := map[string]any{"seq": seq}
	switch {
	case e.Message != nil:
		item["id"], item["says"] = e.Message.ID, string(e.Message.Role)
	case e.Delta != nil:
		item["id"], item["says"] = e.Delta.MessageID, "delta "+e.Delta.Text
	case e.End != nil:
		item["says"] = "end " + e.End.StopReason
	default:
		return nil
	}
	text, err := json.Marshal(item)
	if err != nil {
		panic(err)
	}
	return []json.RawMessage{text}
}

// request returns a request of the agent's default conversation with a user's message, or without one if text is empty.
func (f *fixture) request(text string) loop.Request {
	r := loop.Request{AgentID: f.agent.ID, Conversation: recall.DefaultConversation,
		Options: loop.Options{MaxSteps: 20}}
	if text != "" {
		r.Input = []recall.Draft{says(recall.User, text)}
	}
	return r
}

func says(role recall.Role, text string) recall.Draft {
	return recall.Draft{Role: role, Content: []recall.Part{{Type: recall.Text, Text: text}}}
}

// resultOf is a result that a client sends.
func resultOf(callID, text string) recall.Draft {
	return recall.Draft{Role: recall.Tool, Content: []recall.Part{{Type: recall.ToolReturn, CallID: callID, Text: text}}}
}

// callOf is an answer with one call.
func callOf(id, name, arguments string) modeltest.Answer {
	return modeltest.Answer{Calls: []modeltest.Call{{ID: id, Name: name, Arguments: arguments}}}
}

func (f *fixture) start(r loop.Request) loop.Started {
	f.Helper()
	started, err := f.Start(f.Context(), f.org, r)
	if err != nil {
		f.Fatal(err)
	}
	return started
}

// ended is a run at its end.
type ended struct {
	loop.Run
	Usage   loop.Usage
	Failure *loop.Failure
	events  []loop.Event
}

// await waits for the end of a run.
func (f *fixture) await(s loop.Started) ended {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), patience)
	defer cancel()
	var all []loop.Event
	for {
		events, err := s.Next(ctx, len(all), patience)
		if err != nil {
			f.Fatalf("after %d events: %v", len(all), err)
		}
		all = append(all, events...)
		if n := len(all); n > 0 && all[n-1].End != nil {
			run, err := f.RunByID(ctx, f.org, s.Run.ID)
			if err != nil {
				f.Fatal(err)
			}
			return ended{run, all[n-1].End.Usage, all[n-1].End.Failure, all}
		}
	}
}

// do starts a run and waits for its end.
func (f *fixture) do(r loop.Request) ended {
	f.Helper()
	return f.await(f.start(r))
}

// checkEnd checks how a run ended.
func (f *fixture) checkEnd(got ended, status, reason string) {
	f.Helper()
	if got.StopReason == nil || got.Status != status || *got.StopReason != reason {
		f.Errorf("got %s, stop reason %v, failure %+v; want %s, %s", got.Status, got.StopReason, got.Failure, status, reason)
	}
}

// line is a message as tests compare it, such as "assistant: Hello" or "tool: c1 = No such block (failed)".
func line(m recall.Message) string {
	var parts []string
	for _, p := range m.Content {
		text := p.Text
		switch p.Type {
		case recall.ToolCall:
			text = p.CallID + " " + p.Name + " " + p.Input
		case recall.ToolReturn:
			text = p.CallID + " = " + p.Text
			if p.IsError {
				text += " (failed)"
			}
		}
		if p.Approval != "" {
			text += " [" + string(p.Approval) + "]"
		}
		parts = append(parts, text)
	}
	return string(m.Role) + ": " + strings.Join(parts, "; ")
}

func (f *fixture) conversation() recall.Conversation {
	f.Helper()
	c, err := f.Recall.Conversation(f.Context(), f.org, f.agent.ID, recall.DefaultConversation)
	if err != nil {
		f.Fatal(err)
	}
	return c
}

// messages returns the default conversation's messages without the system prompt.
func (f *fixture) messages() []recall.Message {
	f.Helper()
	c := f.conversation()
	list, err := f.Recall.Messages(f.Context(), f.org, recall.MessageFilter{AgentID: f.agent.ID, Conversation: c.ID,
		WithErrors: true, WithFlushes: true}, db.Page{Limit: 1000, Ascending: true})
	if err != nil {
		f.Fatal(err)
	}
	return list[1:]
}

// checkLog checks the default conversation's messages, without the system prompt.
func (f *fixture) checkLog(want ...string) {
	f.Helper()
	var got []string
	for _, m := range f.messages() {
		got = append(got, line(m))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.Errorf("the conversation (-want +got):\n%s", diff)
	}
}

// offered returns the names of the tools in the model's nth request, and the tool that it must call; "" if it need not.
func (f *fixture) offered(n int) (names []string, must string) {
	f.Helper()
	var sent struct {
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
		Choice json.RawMessage `json:"tool_choice"`
	}
	if err := json.Unmarshal(f.model.Requests()[n].Body, &sent); err != nil {
		f.Fatal(err)
	}
	for _, t := range sent.Tools {
		names = append(names, t.Function.Name)
	}
	return names, string(sent.Choice)
}
